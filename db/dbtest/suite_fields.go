package dbtest

import (
	"reflect"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit/sample"
)

// wantFields checks that each exported field is set in at least one of the
// records, so that no column is written and then never read.
func wantFields[V any](s *store, records []V, except ...string) {
	s.Helper()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[V]()) {
		if !f.IsExported() || f.Anonymous || slices.Contains(except, f.Name) {
			continue
		}
		if !slices.ContainsFunc(records, func(v V) bool { return !reflect.ValueOf(v).FieldByIndex(f.Index).IsZero() }) {
			s.Errorf("%v: no record has the field %s", reflect.TypeFor[V](), f.Name)
		}
	}
}

// everyOption inserts a task for each option, with a value that isn't the
// default.
func (s *store) everyOption() (tasks []jobs.Task) {
	ids := s.insert(commandSpec(), commandSpec()) // for --after
	for _, o := range taskspec.Options {
		spec := commandSpec()
		sample.Set(o, &spec, "/tmp")
		if spec.UniqueKey != "" {
			spec.UniqueKey = o.Key
		}
		ids = append(ids, s.insert(spec)...)
	}

	for _, id := range ids {
		tasks = append(tasks, s.get(id))
	}

	return tasks
}

// ended is an outcome with a value in each field.
var ended = taskspec.Outcome{Reason: jobs.ReasonExit, Error: "exit status 3", ErrorLine: "no space", Result: []byte("1"), ExitCode: new(3),
	Signal: 9, OutputBytes: 9, OutputTruncated: true, Usage: command.Usage{User: time.Second}, ChildrenKilled: 1, ChildrenLeft: 2}

var fieldTests = group{
	"a worker is read as it was written": func(s *store) {
		want := db.WorkerInfo{ID: "w-1", Name: "w", Host: "h", BootID: "b", PID: 7, Namespace: "pid:[1]", User: "ann", UID: 1000,
			Version: "v", Slots: 4, Queues: []jobs.QueueMax{{Name: "media", Max: 2}},
			Jobs: []string{command.Job}, Lease: lease, StartedAt: s.now}
		w := must(s.Register(s.Context(), want, []db.ClaimJob{{Job: command.Job}}))(s)
		want.Running = s.insert(commandSpec(jobs.Queue("media")))
		s.beat(w, claimsOf(s.claimOnly(w))...)
		want.State, want.BeatAt = db.WorkerReady, s.now
		got := must(s.Workers(s.Context(), s.now))(s)
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			s.Errorf("got  %+v\nwant %+v", got, want)
		}

		wantFields(s, got, "Dead")
		wantFields(s, must(s.worker().Owners(s.Context()))(s))
	},
	"a task and its attempts are read as they were written": func(s *store) {
		tasks := s.everyOption()
		w := s.worker()
		id := s.insert(commandSpec(jobs.Priority(1000), jobs.MaxAttempts(1)))[0]
		claimed := s.claim(w, 1)[0]
		if err := w.WriteProgress(s.Context(), []db.Report{{ClaimID: claimsOf(claimed)[0], Progress: []byte(`{"done":1}`)}}); err != nil {
			s.Error(err)
		}

		s.apply(db.Cancel("by ann", true, s.now), id)
		tasks = append(tasks, s.get(id))
		s.sleep(time.Second)
		s.finish(w, claimed, ended)
		other := s.insert(jobs.Spec{Job: "f", Queue: "f", Batch: jobs.NewBatch, Schedule: "backup", Tick: s.now, CreatedBy: "ann"},
			functionSpec("f", jobs.Queue("paused")))
		s.apply(db.PauseTask("ann", "later", s.now), other[1:]...)
		lost := s.worker("f")
		s.finish(lost, s.claimOnly(lost), taskspec.Outcome{Reason: jobs.ReasonLost})
		tasks = append(tasks, s.get(id), s.get(other[0]), s.get(other[1]))
		wantFields(s, tasks, "Kept", "Unknown") // only Enqueue sets Kept, and Unknown needs a newer version
		wantFields(s, s.attempts(id))
	},
	"a schedule is read as it was written": func(s *store) {
		schedule := jobs.Schedule{Name: "backup", Cron: "@daily", Zone: "Europe/Berlin", Spec: commandSpec(),
			Overlap: jobs.OverlapSkip, CatchUp: jobs.CatchUpAll, CatchUpWindow: time.Hour, Jitter: time.Minute,
			AlertAfter: time.Hour, OnTick: true}
		must(0, s.ChangeSchedules(s.Context(), "", s.now, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
			return []jobs.Schedule{schedule}, nil, nil
		}))(s)
		w := s.worker()
		tick := func() {
			must(s.Tick(s.Context(), s.now, true, func(jobs.Schedule) ([]time.Time, time.Time, error) {
				return []time.Time{s.now}, s.now.Add(time.Minute), nil
			}, nil))(s)
			s.sleep(time.Minute)
		}
		tick()
		claimed := s.claimOnly(w)
		s.sleep(time.Minute)
		s.finish(w, claimed, taskspec.Outcome{})
		list := must(s.Schedules(s.Context()))(s)
		tick()
		s.claimOnly(w)
		tick() // skipped
		s.sleep(2 * time.Hour)
		must(w.Alert(s.Context(), s.now))(s)
		list = append(list, must(s.Schedules(s.Context()))(s)...)
		must(s.PauseSchedule(s.Context(), "backup", "ann", s.now))(s)
		list = append(list, must(s.Schedules(s.Context()))(s)...)
		wantFields(s, list)
		got := jobs.Schedule{Name: list[0].Name, Cron: list[0].Cron, Zone: list[0].Zone, Spec: list[0].Spec, Overlap: list[0].Overlap,
			CatchUp: list[0].CatchUp, CatchUpWindow: list[0].CatchUpWindow, Jitter: list[0].Jitter,
			AlertAfter: list[0].AlertAfter, OnTick: list[0].OnTick}
		if !reflect.DeepEqual(got, schedule) {
			s.Errorf("got  %+v\nwant %+v", got, schedule)
		}
	},
}
