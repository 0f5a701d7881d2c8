package dbtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// specSeq returns a sequence of specs. If end is not nil, the last element of
// the sequence is this error.
func specSeq(specs []jobs.Spec, end error) func(func(jobs.Spec, error) bool) {
	return func(yield func(jobs.Spec, error) bool) {
		for _, spec := range specs {
			if !yield(spec, nil) {
				return
			}
		}
		if end != nil {
			yield(jobs.Spec{}, end)
		}
	}
}

var inserts = group{
	"a task has all options of its spec": func(s *store) {
		spec := jobs.Command(command.Command{Argv: []string{"a", "\x01&<>é", ""}, Path: "/bin/a", Dir: "/srv",
			Env: map[string]string{"A": "1", "B": "&é\n"}, EnvFile: "/e",
			Input: []byte("in\x00put")}, jobs.Queue("q"), jobs.Priority(-7), jobs.Label("l"), jobs.In(time.Hour),
			jobs.ExpiresIn(time.Minute),
			jobs.Unique("k"), jobs.MaxAttempts(4), jobs.MaxLosses(2), jobs.Timeout(time.Second), func(s *jobs.Spec) { s.KillAfter = 0 },
			jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffLinear, Delay: time.Second, Max: time.Hour}),
			func(s *jobs.Spec) { s.RetryOn = "75" },
			func(s *jobs.Spec) { s.OutputLimit = 9 })
		spec.CreatedBy = "ann"
		id := s.insert(spec)[0]
		want := taskspec.NewTask(&spec, s.now)
		want.ID = id
		if got := s.get(id); !reflect.DeepEqual(got, want) {
			s.Errorf("got  %+v\nwant %+v", got, want)
		}
		if input := must(s.Input(s.Context(), id))(s); !bytes.Equal(input, spec.Input) {
			s.Errorf("got input %q, want %q", input, spec.Input)
		}
		if input, err := s.Input(s.Context(), id+1); input != nil || err != nil {
			s.Errorf("input of nothing: got input %v, error %v; want nil, nil", input, err)
		}
	},
	"tasks that one call adds share a batch": func(s *store) {
		spec := jobs.NewSpec("test")
		spec.Batch = jobs.NewBatch
		keyed, other := spec, jobs.NewSpec("test")
		keyed.UniqueKey = "k"
		alone := s.insert(keyed)[0]
		first := must(s.InsertSeq(s.Context(), specSeq([]jobs.Spec{keyed, spec, other, spec, spec}, nil), s.now))(s)
		second := s.insert(spec, keyed, spec)
		later := spec
		later.Batch = first[1].ID
		joined := s.insert(later)[0]
		for _, c := range []struct {
			id, batch int64
		}{{alone, alone}, {first[0].ID, alone}, {first[1].ID, first[1].ID}, {first[2].ID, 0}, {first[3].ID, first[1].ID},
			{second[0], second[0]}, {second[1], alone}, {second[2], second[0]}, {joined, first[1].ID}} {
			if got := s.get(c.id).Batch; got != c.batch {
				s.Errorf("task %d: got batch %d, want %d", c.id, got, c.batch)
			}
		}

		want := []int64{first[1].ID, first[3].ID, first[4].ID, joined}
		ids := must(s.IDs(s.Context(), jobs.Filter{Batch: first[1].ID, OldestFirst: true}))(s)
		if !slices.Equal(ids, want) {
			s.Errorf("got tasks %v of the batch, want %v", ids, want)
		}
	},
	"callers that share a transaction get their own ids, and only the failed one gets an error": func(s *store) {
		const callers = 60
		results := make([][]jobs.Enqueued, callers)
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				var specs []jobs.Spec
				for i := range 1 + c%4 {
					specs = append(specs, jobs.Define[int]("f").With(c, jobs.Label(fmt.Sprint(c, " ", i))))
				}

				switch c % 10 {
				case 3: // the last task depends on the task before it, so it needs a statement of its own
					last := &specs[len(specs)-1]
					last.DependsOnEarlier = []int{len(specs) - 2}
				case 7:
					specs[0].MaxLosses = -1 // a CHECK constraint rejects this value
				}

				added, err := s.Insert(s.Context(), specs, s.now)
				if (err != nil) != (c%10 == 7) {
					s.Errorf("caller %d: got error %v, want an error: %v", c, err, c%10 == 7)
				}

				results[c] = added
			})
		}

		wg.Wait()
		n := 0
		for c, added := range results {
			for i, one := range added {
				n++
				task := s.get(one.ID)
				if task.Label != fmt.Sprint(c, " ", i) {
					s.Errorf("task %d of caller %d: got label %q, want %q", i, c, task.Label, fmt.Sprint(c, " ", i))
				}
				if c%10 == 3 && i == len(added)-1 && !slices.Equal(task.DependsOn, []int64{added[i-1].ID}) {
					s.Errorf("got dependencies %v, want %d", task.DependsOn, added[i-1].ID)
				}
			}
		}

		if all := must(s.Count(s.Context(), jobs.Filter{}))(s); all != n {
			s.Errorf("got %d tasks, want %d as acknowledged", all, n)
		}
	},
	"many tasks in one insert get the returned ids, also with tasks that need statements of their own": func(s *store) {
		var specs []jobs.Spec
		for i := range 75 { // 75 tasks need several full statements, a partial one, and single inserts between them
			options := []jobs.Option{jobs.Label(fmt.Sprint("number ", i))}
			if i%31 == 30 {
				options = append(options, jobs.Unique(fmt.Sprint("key ", i)))
			}
			specs = append(specs, jobs.Define[int]("f").With(i, options...))
		}

		one := must(s.Insert(s.Context(), specs[:40], s.now))(s)
		for i, added := range append(one, must(s.InsertSeq(s.Context(), specSeq(specs[40:], nil), s.now))(s)...) {
			want := taskspec.NewTask(&specs[i], s.now)
			want.ID = added.ID
			if got := s.get(added.ID); added.Kept || !reflect.DeepEqual(got, want) {
				s.Errorf("task %d of the list: got  %+v\nwant %+v", i, got, want)
			}
		}
	},
	"a task with minimal options is stored and read back": func(s *store) {
		spec := jobs.Define[json.RawMessage]("f").With(nil)
		spec.Args = nil
		id := s.insert(spec)[0]
		want := taskspec.NewTask(&spec, s.now)
		want.ID = id
		if got := s.get(id); !reflect.DeepEqual(got, want) {
			s.Errorf("got  %+v\nwant %+v", got, want)
		}
	},
	"a duration below one millisecond does not become 0": func(s *store) {
		got := s.get(s.insert(commandSpec(jobs.Timeout(1), func(s *jobs.Spec) { s.KillAfter = 1 }))[0])
		if got.Timeout != time.Millisecond || got.KillAfter != time.Millisecond {
			s.Errorf("got timeout %v, kill_after %v; want 1 ms for both", got.Timeout, got.KillAfter)
		}
	},
	"Insert accepts every spec that Validate accepts": func(s *store) {
		deep := strings.Repeat("[", usercode.MaxDepth) + strings.Repeat("]", usercode.MaxDepth)
		for name, spec := range map[string]jobs.Spec{
			"long": jobs.Command(command.Command{Argv: []string{strings.Repeat("x", taskspec.MaxArgs-4)},
				Path: "/" + strings.Repeat("x", taskspec.MaxPath-1),
				Env:  map[string]string{"A": strings.Repeat("&", taskspec.MaxEnv-8)}, Input: make([]byte, taskspec.MaxInput)},
				jobs.Label(strings.Repeat("é", taskspec.MaxText/2)), jobs.Unique(strings.Repeat("k", taskspec.MaxText)),
				jobs.Queue(strings.Repeat("q", taskspec.MaxName))),
			"deep": jobs.Define[json.RawMessage](strings.Repeat("j", taskspec.MaxName)).With(json.RawMessage(deep)),
			"control": jobs.Command(command.Command{Argv: []string{"a"},
				Env: map[string]string{"A": strings.Repeat("\x01", taskspec.MaxEnv/6-2)}}),
			"late":  commandSpec(jobs.In(taskspec.MaxDelay), jobs.ExpiresIn(taskspec.MaxDelay), jobs.Timeout(taskspec.MaxDelay)),
			"never": commandSpec(jobs.At(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))),
		} {
			if err := taskspec.Validate(&spec); err != nil {
				s.Errorf("%s: got error %v of Validate, want none", name, err)
				continue
			}
			if _, err := s.Insert(s.Context(), []jobs.Spec{spec}, s.now); err != nil {
				s.Errorf("%s: got error %.200v, want none: Validate accepts it", name, err)
			}
		}
	},
	"ids grow in the order of the specs and are not reused": func(s *store) {
		first := s.insert(commandSpec(), commandSpec(), commandSpec())
		s.apply(db.Cancel("", false, s.now), first...)
		s.apply(db.Delete(), first...)
		second := s.insert(commandSpec())
		if !(first[0] < first[1] && first[1] < first[2] && first[2] < second[0]) {
			s.Errorf("got ids %v and then %v, want each id greater than the one before", first, second)
		}
	},
	"an insert with the unique key of an unfinished task keeps that task": func(s *store) {
		added := must(s.Insert(s.Context(), []jobs.Spec{commandSpec(jobs.Unique("k")), commandSpec(jobs.Unique("k")),
			commandSpec(jobs.Unique("other")), commandSpec()}, s.now))(s)
		again := must(s.Insert(s.Context(), []jobs.Spec{commandSpec(jobs.Unique("k"))}, s.now))(s)
		if added[0].Kept || !added[1].Kept || added[1].ID != added[0].ID || added[2].Kept ||
			again[0] != (jobs.Enqueued{ID: added[0].ID, Kept: true}) {
			s.Errorf("got %+v and then %+v; want the second and the last insert to keep task %d, and the others to add tasks",
				added, again, added[0].ID)
		}

		w := s.worker()
		claimed := s.claim(w, 3)
		if got := must(s.Insert(s.Context(), []jobs.Spec{commandSpec(jobs.Unique("k"))}, s.now))(s); !got[0].Kept {
			s.Errorf("the key of a running task: got %+v, want the task kept", got[0])
		}

		s.finish(w, claimed[0], taskspec.Outcome{})
		if got := must(s.Insert(s.Context(), []jobs.Spec{commandSpec(jobs.Unique("k"))}, s.now))(s); got[0].Kept ||
			got[0].ID == added[0].ID {
			s.Errorf("the key of a finished task: got %+v, want a new task other than %d", got, added[0].ID)
		}
	},
	"a batch is stored whole or not at all": func(s *store) {
		bad := commandSpec()
		bad.MaxLosses = -1 // without Validate, the CHECK constraint must reject this Spec
		if added, err := s.Insert(s.Context(), []jobs.Spec{commandSpec(), bad, commandSpec()}, s.now); err == nil || added != nil {
			s.Errorf("got %v, error %v; want nothing added and an error", added, err)
		}
		if n := must(s.Count(s.Context(), jobs.Filter{}))(s); n != 0 {
			s.Errorf("got %d tasks, want none", n)
		}
	},
	"an error of the sequence rolls back everything and is returned unchanged": func(s *store) {
		end := errors.New("line 17")
		added, err := s.InsertSeq(s.Context(), specSeq([]jobs.Spec{commandSpec(), commandSpec(jobs.Unique("k"))}, end), s.now)
		if err != end || added != nil {
			s.Errorf("got error %v, added %v; want %v, nil", err, added, end)
		}
		if n := s.number(`SELECT count(*) FROM tasks`); n != 0 {
			s.Errorf("got %d tasks, want none", n)
		}
	},
	"a sequence yields each task once": func(s *store) {
		asked := 0
		added := must(s.InsertSeq(s.Context(), func(yield func(jobs.Spec, error) bool) {
			for i := range 300 {
				asked++
				if !yield(commandSpec(jobs.Label(fmt.Sprint(i))), nil) {
					return
				}
			}
		}, s.now))(s)
		if asked != 300 || len(added) != 300 || s.get(added[299].ID).Label != "299" {
			s.Errorf(`got %d specs asked for and %d tasks, want 300 of each and the last with label "299"`, asked, len(added))
		}
	},
	"the end of the context ends a sequence between two tasks": func(s *store) {
		ctx, cancel := context.WithCancel(s.Context())
		_, err := s.InsertSeq(ctx, func(yield func(jobs.Spec, error) bool) {
			for yield(commandSpec(), nil) {
				cancel()
			}
		}, s.now)
		if !errors.Is(err, context.Canceled) || s.number(`SELECT count(*) FROM tasks`) != 0 {
			s.Errorf("got error %v, tasks %v; want error %v, 0", err, s.number(`SELECT count(*) FROM tasks`), context.Canceled)
		}
		s.insert(commandSpec()) // the connection can still be used
	},
	"the input has a table of its own and is deleted with its task": func(s *store) {
		id := s.insert(jobs.Command(command.Command{Argv: []string{"cat"}, Input: []byte("x")}))[0]
		if n := s.number(`SELECT count(*) FROM inputs`); n != 1 || s.get(id).InputBytes != 1 {
			s.Errorf("got %d inputs, %d input bytes; want 1, 1", n, s.get(id).InputBytes)
		}
		s.apply(db.Cancel("", false, s.now), id)
		s.apply(db.Delete(), id)
		if n := s.number(`SELECT count(*) FROM inputs`); n != 0 {
			s.Errorf("got %d inputs after the delete, want 0", n)
		}
	},
}

// apply applies an action to tasks.
func (s *store) apply(act db.Action, ids ...int64) []jobs.ActionResult {
	s.Helper()
	return must(s.Apply(s.Context(), ids, act))(s)
}
