package search

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// flags has the options of selectors that are not called like the selector. The
// empty one stands for a text to search for.
var flags = map[string]string{KeyState: "-s", KeyQueue: "-q", KeyJob: "-j", KeyCause: "--group", "": "--match"}

// Flag returns the option with the same effect.
func (t Term) Flag() string {
	if flag, ok := flags[t.Key]; ok {
		return flag
	}
	return "--" + t.Key
}

// TermsOf converts a filter to a search. There are no selectors for IDs,
// FinishedBefore, Before and After.
func TermsOf(f jobs.Filter) []Term {
	var terms []Term
	add := func(key, value string) {
		if value != "" {
			terms = append(terms, Term{key, value})
		}
	}
	words := make([]string, len(f.States))
	for i, s := range f.States {
		words[i] = string(s)
	}

	add(KeyState, strings.Join(words, ","))
	for _, queue := range f.Queues {
		add(KeyQueue, queue)
	}

	for _, job := range f.Jobs {
		add(KeyJob, job)
	}

	add(KeyLabel, f.Label)
	add(KeyLane, f.Lane)
	add(KeySchedule, f.Schedule)
	if f.Batch != 0 {
		add(KeyBatch, strconv.FormatInt(f.Batch, 10))
	}

	add(KeyWorker, f.Worker)
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		add(KeyMeta, key+"="+f.Metadata[key])
	}

	for _, t := range []struct {
		key string
		at  time.Time
	}{{KeySince, f.Since}, {KeyUntil, f.Until}} {
		if !t.at.IsZero() {
			add(t.key, t.at.UTC().Format(time.RFC3339Nano))
		}
	}

	add("", f.Match)
	return terms
}
