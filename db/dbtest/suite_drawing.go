package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// The group drawings tests the queries for the diagrams on the web pages.
var drawings = group{
	"the tasks before and behind a task": func(s *store) {
		w := newOrderStore(s)
		a, other := w.add(), w.add()
		b := w.add(jobs.DependsOn(a))
		c := w.add(jobs.DependsOn(b), jobs.DependsOnAny(a))
		d, e := w.add(jobs.DependsOn(c)), w.add(jobs.DependsOn(c, other))
		s.wantRelated(c, 10, []int64{a, b}, []int64{d, e}, false)
		s.wantRelated(a, 10, nil, []int64{b, c, d, e}, false)
		s.wantRelated(e, 10, []int64{other, c, a, b}, nil, false)
		s.wantRelated(a, 2, nil, []int64{b, c}, true)
		s.wantRelated(a, 3, nil, []int64{b, c, d}, true)
		s.wantRelated(e, 2, []int64{other, c}, nil, true)
		links := must(s.DependenciesAmong(s.Context(), []int64{a, b, c, e}, 10))(s)
		got := map[db.DependencyLink]bool{}
		for _, l := range links {
			got[l] = true
		}

		for _, want := range []db.DependencyLink{{Task: b, On: a}, {Task: c, On: a, Any: true}, {Task: c, On: b}, {Task: e, On: c}} {
			if !got[want] || len(links) != 4 {
				s.Errorf("got links %v, want %v among 4", links, want)
			}
		}
	},
	"a task with many dependents": func(s *store) {
		w := newOrderStore(s)
		a := w.add()
		var behind []int64
		for range 25 {
			behind = append(behind, w.add(jobs.DependsOn(a)))
		}

		s.wantRelated(a, 25, nil, behind, false)
		_, some, more, err := s.Related(s.Context(), a, 2)
		if len(some) != 1 || len(some[0]) != 2 || !slices.Contains(behind, some[0][0]) || !slices.Contains(behind, some[0][1]) ||
			!more || err != nil {
			s.Errorf("got %v, more %v, error %v; want any two of %v, and that there are more", some, more, err, behind)
		}

		s.wantRelated(behind[3], 2, []int64{a}, nil, false)
	},
	"the names of tasks": func(s *store) {
		long := strings.Repeat("x", 2000)
		all := s.insert(commandSpec(jobs.Label("nightly")), jobs.Command(command.Command{Argv: []string{long}}), functionSpec("send"))
		names := must(s.Names(s.Context(), append(all, 99)))(s)
		got := fmt.Sprint(names[all[0]].Label, " ", string(names[all[0]].Args), names[all[1]].Args == nil, names[all[2]].Job, len(names))
		if want := `nightly ["true"]truesend3`; got != want {
			s.Errorf("got %s, want %s", got, want)
		}
		if none, some := must(s.ByID(s.Context(), nil))(s), must(s.ByID(s.Context(), all[:1]))(s); len(none) != 0 || len(some) != 1 {
			s.Errorf("got %d tasks for no id and %d for one id, want none and one", len(none), len(some))
		}
	},
	"the attempts of workers": func(s *store) {
		w := s.worker()
		list := s.insert(commandSpec(), commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{Delay: time.Minute})), commandSpec(),
			commandSpec())
		claimed := s.claim(w, 4)
		s.sleep(time.Second)
		s.finish(w, claimed[0], taskspec.Outcome{})
		s.sleep(time.Second)
		s.finish(w, claimed[1], failed)
		s.finish(w, claimed[2], taskspec.OutcomeOf(nil, jobs.Snooze(time.Hour)))
		s.wantRuns(start, 10, start, fmt.Sprintf("w/4: %d completed 1s, %d failed 2s, %d snoozed 2s, %d running", list[0], list[1], list[2],
			list[3]))
		s.wantRuns(start.Add(2*time.Second), 10, start.Add(2*time.Second), fmt.Sprintf("w/4: %d failed 2s, %d snoozed 2s, %d running",
			list[1], list[2], list[3]))
		s.sleep(2 * time.Minute) // the next attempt of the failed task starts
		again := s.claimOnly(w)
		s.finish(w, again, taskspec.Outcome{})
		s.wantRuns(start.Add(time.Minute), 10, start.Add(time.Minute), fmt.Sprintf("w/4: %d running, %d completed 0s", list[3], list[1]))
		s.wantRuns(start, 1, start.Add(2*time.Minute+2*time.Second), fmt.Sprintf("w/4: %d running, %d completed 0s",
			list[3], list[1]))
	},
}

func (s *store) wantRelated(id int64, most int, before, behind []int64, more bool) {
	s.Helper()
	b, d, m, err := s.Related(s.Context(), id, most)
	if err != nil || !slices.Equal(slices.Concat(b...), before) || !slices.Equal(slices.Concat(d...), behind) || m != more {
		s.Errorf("task %d, most %d: got before %v, behind %v, more %v, error %v; want %v, %v, %v",
			id, most, b, d, m, err, before, behind, more)
	}
}

func (s *store) wantRuns(since time.Time, most int, wantFrom time.Time, want string) {
	s.Helper()
	workers, from, err := s.RunsByWorker(s.Context(), since, most)
	var texts []string
	for _, w := range workers {
		var runs []string
		for _, r := range w.Runs {
			text := fmt.Sprint(r.TaskID, " ", r.State)
			if !r.FinishedAt.IsZero() {
				text += fmt.Sprint(" ", r.FinishedAt.Sub(r.StartedAt))
			}
			runs = append(runs, text)
		}

		texts = append(texts, fmt.Sprintf("%s/%d: %s", w.Name, w.Slots, strings.Join(runs, ", ")))
	}

	if got := strings.Join(texts, "; "); err != nil || got != want || !from.Equal(wantFrom) {
		s.Errorf("got %s from %v, error %v\nwant %s from %v", got, from, err, want, wantFrom)
	}
}
