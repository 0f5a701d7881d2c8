package search

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestParseTerms(t *testing.T) {
	for text, want := range map[string][]Term{
		"":                         nil,
		"  ":                       nil,
		"state:failed":             {{KeyState, "failed"}},
		"state:failed queue:a b c": {{KeyState, "failed"}, {KeyQueue, "a"}, {"", "b c"}},
		`label:"night run" x`:      {{KeyLabel, "night run"}, {"", "x"}},
		`"state:failed"`:           {{"", "state:failed"}},
		`a "b  c" d`:               {{"", "a b  c d"}},
		`"say \"hi\" \\ \n"`:       {{"", `say "hi" \ \n`}},
		"12:30":                    {{"", "12:30"}},
		"exit 7 · fatal: no route": {{"", "exit 7 · fatal: no route"}},
		`C:\tmp`:                   {{"", `C:\tmp`}},
		"worker:web1:811":          {{KeyWorker, "web1:811"}},
		"since:15:04":              {{KeySince, "15:04"}},
	} {
		if got, err := ParseTerms(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, error %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		`quue:media`: `unknown selector "quue:"; did you mean queue:?`, `color:red`: `unknown selector "color:" (state queue `,
		`state:`: `state: needs a value`, `a "b`: `a quotation mark is missing at the end`,
	} {
		if _, err := ParseTerms(text); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want jobs.ErrInvalid with %q", text, err, want)
		}
	}
}

func TestParseFilter(t *testing.T) {
	at := time.Date(2026, 1, 31, 13, 11, 15, 0, time.UTC)
	f, err := ParseFilter([]Term{{KeyState, "failed"}, {KeyState, "finished"}, {KeyQueue, "a"}, {KeyQueue, "b"}, {KeySince, "1d"},
		{"", "x"}}, at, time.UTC)
	want := jobs.Filter{States: []jobs.State{jobs.Cancelled, jobs.Completed, jobs.Failed}, Queues: []string{"a", "b"},
		Since: at.Add(-24 * time.Hour), Match: "x"}
	testkit.NoError(t, err)
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got filter %+v, want %+v", f, want)
	}
	for _, term := range []Term{{KeyState, "done"}, {KeyQueue, "a b"}, {KeySince, "5"}, {KeyUntil, "soon"}, {KeyJob, "é"},
		{KeySchedule, "-"}, {KeyMeta, "tenant"}, {KeyMeta, "é=a"}, {"color", "x"}} {
		_, err := ParseFilter([]Term{term}, at, time.UTC)
		testkit.ErrorIs(t, err, jobs.ErrInvalid)
		if !strings.HasPrefix(err.Error(), term.Key) {
			t.Errorf("%v: got error %v, want one that begins with %q", term, err, term.Key)
		}
	}
}

// TestFilterIsSameAfterWritingAndParsing converts a filter to a search and
// parses this search. The result must be the filter again.
func TestFilterIsSameAfterWritingAndParsing(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,8}`)
	text := rapid.StringOf(rapid.RuneFrom([]rune(" \"\\:abcé\t-")))
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		if ms := rapid.Int64Range(0, 4e12).Draw(t, "ms"); ms > 0 {
			return time.UnixMilli(ms).UTC()
		}
		return time.Time{}
	})
	list := func(t *rapid.T, what string) []string {
		names := rapid.SliceOfN(name, 0, 3).Draw(t, what)
		if len(names) == 0 {
			return nil
		}
		return names
	}
	rapid.Check(t, func(t *rapid.T) {
		f := jobs.Filter{Queues: list(t, "queues"), Jobs: list(t, "jobs"), Label: text.Draw(t, "label"), Lane: text.Draw(t, "lane"),
			Schedule: rapid.OneOf(rapid.Just(""), name).Draw(t, "schedule"), Worker: text.Draw(t, "worker"), Match: text.Draw(t, "match"),
			Since: moment.Draw(t, "since"), Until: moment.Draw(t, "until")}
		for _, key := range rapid.SliceOfN(name, 0, 2).Draw(t, "keys") {
			if f.Metadata == nil {
				f.Metadata = map[string]string{}
			}
			f.Metadata[key] = text.Draw(t, "text")
		}
		for _, s := range taskspec.AllStates() {
			if rapid.Bool().Draw(t, string(s)) {
				f.States = append(f.States, s)
			}
		}
		slices.Sort(f.States)
		written := JoinTerms(TermsOf(f))
		terms, err := ParseTerms(written)
		if err != nil {
			t.Fatalf("%s: got error %v, want none", written, err)
		}
		if again, err := ParseFilter(terms, time.Unix(0, 0), time.UTC); err != nil || !reflect.DeepEqual(again, f) {
			t.Fatalf("written as %s: got %+v, error %v; want %+v", written, again, err, f)
		}
	})
}

func FuzzParseTerms(f *testing.F) {
	f.Add(`state:failed queue:"a b" x "y\"z"`)
	f.Fuzz(func(t *testing.T, text string) {
		terms, err := ParseTerms(text)
		if err != nil {
			return
		}
		again, err := ParseTerms(JoinTerms(terms))
		if err != nil || !slices.Equal(again, terms) {
			t.Fatalf("%q, written as %s: got %q, error %v; want %q", text, JoinTerms(terms), again, err, terms)
		}
	})
}

func TestVerbSelectsStatesItAppliesTo(t *testing.T) {
	for _, test := range []struct {
		verb   Verb
		filter jobs.Filter
		want   []jobs.State
		ok     bool
	}{
		{VerbRetry, jobs.Filter{}, []jobs.State{jobs.Failed}, true},
		{VerbRetry, jobs.Filter{States: []jobs.State{jobs.Completed, jobs.Cancelled}}, []jobs.State{jobs.Cancelled}, true},
		{VerbRetry, jobs.Filter{States: []jobs.State{jobs.Completed}}, nil, false},
		{VerbRetry, jobs.Filter{States: []jobs.State{jobs.Running, jobs.Pending}}, nil, false}, // a task in these states cannot be retried
		{VerbRetry, jobs.Filter{IDs: []int64{7}}, nil, true},                                   // a filter with ids is not changed
		{VerbCancel, jobs.Filter{}, taskspec.Unfinished(), true},
		{VerbCancel, jobs.Filter{States: []jobs.State{jobs.Failed}}, nil, false},
		{VerbDelete, jobs.Filter{States: []jobs.State{jobs.Failed, jobs.Pending}}, []jobs.State{jobs.Failed}, true},
	} {
		got, ok := test.verb.Filter(test.filter)
		if !slices.Equal(got.States, test.want) || ok != test.ok {
			t.Errorf("%v of %v: got states %v, %v; want %v, %v", test.verb, test.filter.States, got.States, ok, test.want, test.ok)
		}
	}
}

func TestParseStates(t *testing.T) {
	for text, want := range map[string][]jobs.State{
		"pending":                  {jobs.Pending},
		"running, failed":          {jobs.Failed, jobs.Running},
		"failed,failed":            {jobs.Failed},
		"finished":                 {jobs.Cancelled, jobs.Completed, jobs.Failed},
		"unfinished":               {jobs.Blocked, jobs.Pending, jobs.Retrying, jobs.Running, jobs.Scheduled},
		"finished,cancelled":       {jobs.Cancelled, jobs.Completed, jobs.Failed},
		"unfinished,finished":      slices.Sorted(slices.Values(taskspec.AllStates())),
		" scheduled ,\tretrying  ": {jobs.Retrying, jobs.Scheduled},
	} {
		if got, err := ParseStates(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseStates(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ",", "pending,", "snoozed", "done", "pending running", "pending;running"} {
		got, err := ParseStates(text)
		if err == nil || got != nil {
			t.Errorf("ParseStates(%q) = %v, %v, want an error", text, got, err)
			continue
		}
		for _, s := range taskspec.AllStates() {
			if !strings.Contains(err.Error(), string(s)) {
				t.Errorf("%q: got error %v, want one that offers %s", text, err, s)
			}
		}
	}
}

func TestParseStatesNamesSimilarState(t *testing.T) {
	for text, want := range map[string]string{"faild": "failed", "Pending": "pending", "compelted": "completed",
		"unfinishd": "unfinished"} {
		_, err := ParseStates(text)
		if err == nil || !strings.HasSuffix(err.Error(), "; did you mean "+want+"?") {
			t.Errorf("%s: got error %v, want one that offers %s", text, err, want)
		}
	}
}
