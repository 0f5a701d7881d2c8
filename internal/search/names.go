package search

import (
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
)

// Names contains the names that occur in a database. The key is the selector that takes a name as its value, such as queue.
type Names map[string][]string

// openKeys are selectors that Words suggests even if it knows no value for them. It then suggests only the selector, such as "lane:".
var openKeys = []string{KeyLane, KeyBatch, KeyMeta, KeyUntil, KeyID}

// mostWords is the number of names of a selector that Words suggests. A browser
// gets slow with more.
const mostWords = 200

// Words returns the suggestions for a search field: a term for each state, for each name in n and for some ages, such as "queue:mail". If n
// has no names for a selector in openKeys, Words suggests the selector alone, such as "lane:".
func (n Names) Words() []string {
	var words []string
	add := func(key string, values ...string) {
		for _, value := range values {
			words = append(words, Term{key, value}.String())
		}
	}
	add(KeyState, "failed", "running", "pending", "retrying", "scheduled", "blocked", "completed", "cancelled", "unfinished", "finished")
	for _, key := range []string{KeyQueue, KeyJob, KeyLabel, KeySchedule, KeyWorker, KeyLane, KeyMeta} {
		add(key, n[key][:min(len(n[key]), mostWords)]...)
	}
	add(KeySince, "1h", "1d", "7d")
	for _, key := range openKeys {
		if len(n[key]) == 0 {
			words = append(words, key+":")
		}
	}
	return words
}

// Correct returns a search without spelling mistakes: it replaces selectors, states and names by similar ones that exist. It returns an
// empty text if there is nothing to replace, or if the search has other errors.
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

// nearest returns the most similar word of the list. It returns word itself if the list contains it, or if nothing is similar.
func nearest(word string, list []string) string {
	if slices.Contains(list, word) {
		return word
	}
	if near := humanize.Nearest(word, list); near != "" {
		return near
	}
	return word
}
