package search

import (
	"slices"
	"strings"

	"example.com/runner/internal/spelling"
)

// Names are the names that a database knows, by the selector that takes them.
type Names map[string][]string

// openKeys are the selectors without a list of values.
var openKeys = []string{KeyLane, KeyBatch, KeyMeta, KeyUntil}

// Words returns the terms that a search field offers: the states, the known names, and the selectors without a list of values.
func (n Names) Words() []string {
	var words []string
	add := func(key string, values ...string) {
		for _, value := range values {
			words = append(words, Term{key, value}.String())
		}
	}
	add(KeyState, "failed", "running", "pending", "retrying", "scheduled", "blocked", "completed", "cancelled", "unfinished", "finished")
	for _, key := range []string{KeyQueue, KeyJob, KeyLabel, KeySchedule, KeyWorker, KeyLane} {
		add(key, n[key]...)
	}
	add(KeySince, "1h", "1d", "7d")
	for _, key := range openKeys {
		if len(n[key]) == 0 {
			words = append(words, key+":")
		}
	}
	return words
}

// Correct returns a search in which misspelt selectors, states and names are replaced by the most similar ones. It returns an empty text if
// it finds nothing to replace, or if the search has other errors.
func Correct(text string, names Names) string {
	terms, err := splitTerms(text)
	if err != nil {
		return ""
	}
	before := slices.Clone(terms)
	for i := range terms {
		t := &terms[i]
		if t.Key == "" {
			continue
		}
		t.Key = nearest(t.Key, termKeys)
		switch t.Key {
		case KeyState:
			words := strings.Split(t.Value, ",")
			for i := range words {
				words[i] = nearest(strings.ToLower(strings.TrimSpace(words[i])), stateWords())
			}
			t.Value = strings.Join(words, ",")
		case KeyQueue, KeyJob, KeySchedule, KeyWorker:
			t.Value = nearest(t.Value, names[t.Key])
		}
	}
	better := JoinTerms(terms)
	if _, err := ParseTerms(better); err != nil || slices.Equal(terms, before) {
		return ""
	}
	return better
}

// nearest returns word if it is in the list, or the most similar word of the list. If none is similar, it returns word.
func nearest(word string, list []string) string {
	if slices.Contains(list, word) {
		return word
	}
	if near := spelling.Nearest(word, list); near != "" {
		return near
	}
	return word
}
