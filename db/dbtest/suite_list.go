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

// oneOfEachState adds a task in each state, each with its own queue and label.
// It returns the ids by state.
func (s *store) oneOfEachState() map[jobs.State]int64 {
	s.Helper()
	all := map[jobs.State]int64{}
	for _, state := range taskspec.AllStates() {
		all[state] = s.inState(state, jobs.Queue("q."+string(state)), jobs.Label("l "+string(state)))
		s.sleep(time.Minute)
	}
	return all
}

func (s *store) list(f jobs.Filter) []int64 {
	s.Helper()
	f.OldestFirst = true
	found := must(s.IDs(s.Context(), f))(s)
	tasks := ids(must(s.List(s.Context(), f))(s))
	if n := must(s.Count(s.Context(), f))(s); n != len(found) || !slices.Equal(tasks, found) {
		s.Errorf("%+v: got List %v, Count %d; want %v as IDs returned", f, tasks, n, found)
	}
	return found
}

var lists = group{
	"a list by time continues after a task": func(s *store) {
		all := s.oneOfEachState()
		byTime := func(p db.Part, states ...jobs.State) []int64 {
			p.Limit = 2
			tasks, _, err := s.ListPart(s.Context(), jobs.Filter{States: states}, p)
			if err != nil {
				s.Fatal(err)
			}
			return ids(tasks)
		}
		first := byTime(db.Part{Sort: db.ByEnd})
		last := s.get(first[len(first)-1])
		rest := byTime(db.Part{Sort: db.ByEnd, After: db.Mark{At: last.FinishedAt, ID: last.ID}})
		s.wantIDs(append(first, rest...), []int64{all[jobs.Cancelled], all[jobs.Failed], all[jobs.Completed]})
		s.wantIDs(byTime(db.Part{Sort: db.ByEnd}, jobs.Failed), []int64{all[jobs.Failed]})
		due := byTime(db.Part{Sort: db.ByDue})
		slices.Sort(due)
		s.wantIDs(due, []int64{all[jobs.Scheduled], all[jobs.Retrying]})
		retrying := db.Mark{At: s.get(all[jobs.Retrying]).RunAt, ID: all[jobs.Retrying]}
		for _, id := range byTime(db.Part{Sort: db.ByDue, After: retrying}) {
			if id == all[jobs.Retrying] {
				s.Error("got the task after which the list begins, want only later ones")
			}
		}
	},
	"the last line of a failed command is stored with its task and its attempt, and a search finds it": func(s *store) {
		w, claimed := s.runningTask()
		s.finish(w, claimed, taskspec.Outcome{Reason: jobs.ReasonExit, Error: "exit status 1", ErrorLine: "cp: no space left on device"})
		task, attempts := s.get(claimed.ID), s.attempts(claimed.ID)
		if task.ErrorLine != "cp: no space left on device" || len(attempts) != 1 || attempts[0].ErrorLine != task.ErrorLine {
			s.Errorf("got line %q and attempts %+v, want the last line in both", task.ErrorLine, attempts)
		}
		s.wantIDs(s.list(jobs.Filter{Match: "NO SPACE left"}), []int64{claimed.ID})
		s.wantIDs(s.list(jobs.Filter{Match: "space_left"}), nil)
	},
	"each field of a filter selects tasks": func(s *store) {
		all := s.oneOfEachState()
		var every []int64
		for _, state := range taskspec.AllStates() {
			every = append(every, all[state])
		}

		worker := s.get(all[jobs.Running]).WorkerID
		for name, c := range map[string]struct {
			filter jobs.Filter
			want   []int64
		}{
			"all":    {jobs.Filter{}, every},
			"ids":    {jobs.Filter{IDs: []int64{every[3], 99, every[1]}}, []int64{every[1], every[3]}},
			"no ids": {jobs.Filter{IDs: []int64{}}, nil},
			"state":  {jobs.Filter{States: []jobs.State{jobs.Retrying}}, []int64{all[jobs.Retrying]}},
			"states": {jobs.Filter{States: []jobs.State{jobs.Completed, jobs.Pending}},
				[]int64{all[jobs.Pending], all[jobs.Completed]}},
			"unfinished":     {jobs.Filter{States: taskspec.Unfinished()}, every[:5]},
			"finished":       {jobs.Filter{States: taskspec.Finished()}, every[5:]},
			"queues":         {jobs.Filter{Queues: []string{"q.failed", "q.pending"}}, []int64{all[jobs.Pending], all[jobs.Failed]}},
			"jobs":           {jobs.Filter{Jobs: []string{"control.failed", "control"}}, []int64{all[jobs.Failed]}},
			"label":          {jobs.Filter{Label: "l failed"}, []int64{all[jobs.Failed]}},
			"part of label":  {jobs.Filter{Label: "l"}, nil},
			"worker's name":  {jobs.Filter{Worker: "w", States: []jobs.State{jobs.Running, jobs.Pending}}, []int64{all[jobs.Running]}},
			"worker's id":    {jobs.Filter{Worker: worker}, []int64{all[jobs.Running]}},
			"no such worker": {jobs.Filter{Worker: "nobody"}, nil},
			"match":          {jobs.Filter{Match: "L FAIL"}, []int64{all[jobs.Failed]}},
			"before":         {jobs.Filter{Before: every[2]}, every[:2]},
			"after":          {jobs.Filter{After: every[5]}, every[6:]},
			"between":        {jobs.Filter{After: every[1], Before: every[4]}, every[2:4]},
			"both":           {jobs.Filter{Queues: []string{"q.failed"}, States: []jobs.State{jobs.Pending}}, nil},
			"since":          {jobs.Filter{Since: start.Add(5 * time.Minute)}, every[5:]},
			"until":          {jobs.Filter{Until: start.Add(5 * time.Minute)}, every[:5]},
			"within":         {jobs.Filter{Since: start.Add(2 * time.Minute), Until: start.Add(4 * time.Minute)}, every[2:4]},
			"finished early": {jobs.Filter{FinishedBefore: start.Add(6 * time.Minute)}, every[5:6]},
		} {
			if got := s.list(c.filter); !slices.Equal(got, c.want) {
				s.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	},
	"since compares the end of finished tasks and the creation of others": func(s *store) {
		old := s.insert(commandSpec(), commandSpec())
		w := s.worker()
		claimed := s.claimOne(w)
		s.sleep(time.Hour)
		s.finish(w, claimed, taskspec.Outcome{})
		s.wantIDs(s.list(jobs.Filter{Since: s.now}), old[:1])
		s.wantIDs(s.list(jobs.Filter{Until: s.now}), old[1:])
	},
	"metadata selects the tasks that have all of its texts": func(s *store) {
		s.insert(functionSpec("f", jobs.Metadata(map[string]string{"tenant": "acme", "a.b/c": "1", "n": ""})),
			functionSpec("f", jobs.Metadata(map[string]string{"tenant": "acme", "7": "é\"'"})),
			commandSpec(), commandSpec(jobs.Metadata(map[string]string{"tenant": "1"})))
		for _, c := range []struct {
			metadata map[string]string
			want     []int64
		}{
			{map[string]string{"tenant": "acme"}, []int64{1, 2}},
			{map[string]string{"tenant": "acme", "a.b/c": "1"}, []int64{1}},
			{map[string]string{"tenant": "acme", "a.b/c": "2"}, nil},
			{map[string]string{"7": "é\"'"}, []int64{2}},
			{map[string]string{"tenant": "1"}, []int64{4}},
			{map[string]string{"n": ""}, []int64{1}},
			{map[string]string{"TENANT": "acme"}, nil},
			{map[string]string{"tenant": "acm"}, nil},
			{map[string]string{"$.tenant": "acme"}, nil},
			{map[string]string{"no\x00key": "a\x00b"}, nil},
		} {
			s.wantIDs(s.list(jobs.Filter{Metadata: c.metadata}), c.want)
		}

		many := map[string]string{}
		for i := range taskspec.MaxMetadataKeys + 1 {
			many[fmt.Sprint(i)] = ""
		}

		s.wantIDs(s.list(jobs.Filter{Metadata: many}), nil)
		// a row that runner did not write does not break the search
		s.exec(`UPDATE tasks SET options = '{"metadata":["acme"]}' WHERE id = 1`)
		s.wantIDs(s.list(jobs.Filter{Metadata: map[string]string{"tenant": "acme"}}), []int64{2})
	},
	"a match is a text, not a pattern": func(s *store) {
		labels := []string{`100%`, `100x`, `a_b`, `axb`, `c\d`, `cd`, `e'f"`, `[x]`, `x*`, `?`, `ÄÖ`, `--;`}
		for _, label := range labels {
			s.insert(functionSpec("f", jobs.Label(label)))
		}

		for _, label := range append(labels, `%`, `_`, `\`, `'`, `*`) {
			var want []int64
			for i, other := range labels {
				if label == other || len(label) == 1 && contains(other, label) {
					want = append(want, int64(i+1))
				}
			}

			if got := s.list(jobs.Filter{Match: label}); !slices.Equal(got, want) {
				s.Errorf("%q: %v, want %v", label, got, want)
			}
		}
	},
	"a match searches label, job, args and error": func(s *store) {
		s.insert(functionSpec("f", jobs.Label("needle")), functionSpec("needle.find"),
			jobs.Command(command.Command{Argv: []string{"x", "Needle"}}), functionSpec("g", jobs.MaxAttempts(1)))
		w := s.worker("g")
		s.finish(w, s.claimOnly(w), taskspec.Outcome{Reason: jobs.ReasonError, Error: "no NEEDLE here"})
		s.wantIDs(s.list(jobs.Filter{Match: "needle"}), []int64{1, 2, 3, 4})
	},
	"special characters in filter values are data": func(s *store) {
		s.insert(commandSpec())
		for _, odd := range []string{"'", `"`, "'; DROP TABLE tasks; --", "?", "\x00", "é", `\`, `["a"]`} {
			f := jobs.Filter{Queues: []string{odd}, Jobs: []string{odd}, Label: odd, Worker: odd, Match: odd}
			if got := s.list(f); len(got) != 0 {
				s.Errorf("%q: got %v, want none", odd, got)
			}
		}

		s.wantIDs(s.list(jobs.Filter{}), []int64{1})
	},
	"the newest tasks come first unless OldestFirst is set": func(s *store) {
		s.oneOfEachState()
		for _, f := range []jobs.Filter{{}, {States: []jobs.State{jobs.Pending, jobs.Failed}}, {States: taskspec.Finished()},
			{States: taskspec.Unfinished()}, {IDs: []int64{3, 1, 2}}} {
			oldest := s.list(f)
			newest := must(s.IDs(s.Context(), f))(s)
			slices.Reverse(newest)
			s.wantIDs(newest, oldest)

			f.Limit = 1
			if got := must(s.IDs(s.Context(), f))(s); len(got) != 1 || got[0] != oldest[len(oldest)-1] {
				s.Errorf("%+v: got %v as the newest task, want %d", f, got, oldest[len(oldest)-1])
			}
			f.OldestFirst = true
			if got := must(s.IDs(s.Context(), f))(s); len(got) != 1 || got[0] != oldest[0] {
				s.Errorf("%+v: got %v as the oldest task, want %d", f, got, oldest[0])
			}
		}
	},
	"queue statistics count by state and job and include the oldest task": func(s *store) {
		s.insert(commandSpec(jobs.Queue("a")), commandSpec(jobs.Queue("a"), jobs.Priority(9)), functionSpec("f", jobs.Queue("a")),
			commandSpec(jobs.Queue("a"), jobs.In(time.Hour)), commandSpec(jobs.Queue("b"), jobs.In(time.Hour)))
		s.sleep(-time.Minute)
		s.insert(functionSpec("f", jobs.Queue("a"), jobs.Priority(-3)))
		s.sleep(time.Minute)
		w := s.worker()
		s.finish(w, s.claimOne(w), taskspec.Outcome{})
		s.claimOne(w)
		got := must(s.Queues(s.Context(), start, s.now))(s)
		a, b := got["a"], got["b"]
		if len(got) != 2 || a == nil || b == nil {
			s.Fatalf("got %+v, want queues a and b", got)
		}
		if a.Counts[jobs.Pending] != 2 || a.Counts[jobs.Running] != 1 || a.Counts[jobs.Scheduled] != 1 ||
			a.Ended[jobs.Completed] != 1 || a.Jobs["f"] != 2 || a.Jobs["command"] != 0 ||
			!a.Oldest.Equal(start.Add(-time.Minute)) || b.Counts[jobs.Scheduled] != 1 || !b.Oldest.IsZero() {
			s.Errorf("got %+v, %+v; want counts[Pending] 2, counts[Running] 1, counts[Scheduled] 1, ended[Completed] 1, "+
				`jobs["f"] 2, jobs["command"] 0, oldest %v, counts[Scheduled] 1, oldest none`,
				*a, *b, start.Add(-time.Minute))
		}
		if later := must(s.Queues(s.Context(), start.Add(time.Hour), s.now))(s); later["a"].Ended[jobs.Completed] != 0 {
			s.Errorf(`got later["a"] ended[Completed] %v, want 0`, later["a"].Ended[jobs.Completed])
		}
	},
	"a failed task counts until it is retried or deleted": func(s *store) {
		ids := s.insert(commandSpec(), commandSpec(), commandSpec(), commandSpec(jobs.Queue("a")))
		w := s.worker()
		for range ids {
			s.finish(w, s.claimOne(w), failed)
		}

		stand := func(here, there int) {
			got := must(s.Queues(s.Context(), start, s.now))(s)
			if d, a := got["default"], got["a"]; d == nil || a == nil || d.Failed != here || a.Failed != there ||
				d.Ended[jobs.Failed] != 3 || a.Ended[jobs.Failed] != 1 {
				s.Errorf("got %+v, %+v; want %d and %d failed tasks", d, a, here, there)
			}
		}
		stand(3, 1)
		must(s.DB.Apply(s.Context(), ids[:1], db.Retry(time.Time{}, s.now, false)))(s)
		stand(2, 1)
		must(s.DB.Apply(s.Context(), ids[1:], db.Delete()))(s)
		stand(0, 0)
	},
	"QueuePosition counts the tasks that start before a task": func(s *store) {
		var specs []jobs.Spec
		for i := range 12 {
			specs = append(specs, commandSpec(jobs.Priority(i%3), jobs.Queue(fmt.Sprint("q", i%2))))
		}

		s.insert(specs...)
		w := s.worker()
		ahead := map[int64]int{}
		for _, t := range must(s.List(s.Context(), jobs.Filter{}))(s) {
			ahead[t.ID] = must(s.QueuePosition(s.Context(), t, 100))(s)
			if got, want := must(s.QueuePosition(s.Context(), t, 2))(s), min(ahead[t.ID], 2); got != want {
				s.Errorf("task %d: got %d tasks ahead, want %d because 2 is the most to count", t.ID, got, want)
			}
		}

		place := map[string]int{}
		for _, t := range s.claim(w, 12) {
			if ahead[t.ID] != place[t.Queue] {
				s.Errorf("task %d of queue %s: got %d tasks ahead, want %d", t.ID, t.Queue, ahead[t.ID], place[t.Queue])
			}
			place[t.Queue]++
		}
	},
}

func contains(text, part string) bool { return strings.Contains(text, part) }
