package dbtest

import (
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// alertSchedule adds a schedule with alerts and a hook, and returns a worker.
func (s *store) alertSchedule(hooks command.Hooks) *db.Worker {
	s.Helper()
	schedule := taskspec.WithDefaults(jobs.Schedule{Name: "backup", Cron: "@daily", AlertAfter: time.Hour,
		Spec: commandSpec(func(s *jobs.Spec) { s.Hooks = hooks })})
	if err := s.ChangeSchedules(s.Context(), "", s.now, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
		return []jobs.Schedule{schedule}, nil, nil
	}); err != nil {
		s.Fatal(err)
	}
	return s.worker()
}

// runScheduled starts a task of the schedule by hand, and claims it.
func (s *store) runScheduled(w *db.Worker) jobs.Task {
	s.Helper()
	if _, _, err := s.RunSchedule(s.Context(), "backup", "ann", s.now, nil); err != nil {
		s.Fatal(err)
	}
	return s.claimOnly(w)
}

func (s *store) wantAlerts(w *db.Worker, want ...string) {
	s.Helper()
	var got []string
	for _, a := range must(w.Alert(s.Context(), s.now))(s) {
		got = append(got, a.Name)
	}

	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("got alerts %q, want %q", got, want)
	}
}

var alertTests = group{
	"a schedule without a success is late once in each episode": func(s *store) {
		hooks := allHooks
		hooks.OnRecovery = "well"
		w := s.alertSchedule(hooks)
		s.sleep(59 * time.Minute)
		s.wantAlerts(w)
		s.sleep(2 * time.Minute)
		s.wantAlerts(w, "backup")
		s.wantAlerts(s.worker()) // a second worker sees that the alert is already recorded
		s.wantHooks("late of : bad")
		hook := s.claimOnly(w)
		if got, want := hook.Env["RUNNER_EVENT_ERROR"], "no task of schedule backup has completed for 1h1m0s"; got != want {
			s.Errorf("got RUNNER_EVENT_ERROR %q, want %q", got, want)
		}

		want := "schedule backup is late: no task of schedule backup has completed for 1h1m0s"
		if got := hook.Env["RUNNER_EVENT_TITLE"]; got != want {
			s.Errorf("got RUNNER_EVENT_TITLE %q, want %q", got, want)
		}

		s.finish(w, hook, taskspec.Outcome{})
		s.finish(w, s.runScheduled(w), taskspec.Outcome{})
		s.wantHooks("completed of 2: good", "late of : bad", "recovered of 2: well")
		s.sleep(time.Hour)
		s.wantAlerts(w)
		s.sleep(time.Minute)
		s.wantAlerts(w, "backup")
	},
	"a failure is no success, and a deleted success still counts": func(s *store) {
		w := s.alertSchedule(command.Hooks{})
		s.sleep(time.Minute)
		s.finish(w, s.runScheduled(w), taskspec.Outcome{})
		s.sleep(30 * time.Minute)
		s.finish(w, s.runScheduled(w), failed)
		s.exec(`DELETE FROM tasks WHERE state = 'completed'`)
		s.sleep(25 * time.Minute)
		s.wantAlerts(w)
		s.sleep(6 * time.Minute)
		s.wantAlerts(w, "backup")
		s.wantHooks() // neither the schedule nor the worker has a hook
	},
	"a paused schedule is not late": func(s *store) {
		w := s.alertSchedule(allHooks)
		must(s.PauseSchedule(s.Context(), "backup", "ann", s.now))(s)
		s.sleep(24 * time.Hour)
		s.wantAlerts(w)
		must(s.ResumeSchedule(s.Context(), "backup", func(jobs.Schedule) time.Time { return time.Time{} }, s.now))(s)
		s.wantAlerts(w)
		s.sleep(2 * time.Hour)
		s.wantAlerts(w, "backup")
	},
}
