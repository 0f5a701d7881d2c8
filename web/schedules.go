package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

const (
	maxRunsShown = 20
	maxSchedules = 200 // maximum number of schedules for which the page shows tasks
)

type schedulesView struct {
	page
	Schedules []scheduleView
}

type scheduleView struct {
	jobs.Schedule
	JobText string
	Paused  bool
	Runs    []jobs.Task // tasks of the schedule, oldest first
}

func (h *handler) schedules(ctx context.Context, req *http.Request) (view, error) {
	v := &schedulesView{page: h.newPage(req, "Schedules")}
	list, err := h.r.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	failed := 0
	for i, s := range list {
		view := scheduleView{Schedule: s, Paused: !s.PausedAt.IsZero(), JobText: v.Job(taskspec.NewTask(&s.Spec, time.Time{}))}
		if s.LastState == jobs.Failed {
			failed++
		}
		if i < maxSchedules {
			if view.Runs, err = admin.ScheduleRuns(ctx, h.r, s.Name, maxRunsShown); err != nil {
				return nil, err
			}
			slices.Reverse(view.Runs)
		}
		view.PausedBy = humanize.Safe(s.PausedBy)
		v.Schedules = append(v.Schedules, view)
	}
	if failed > 0 {
		v.Title = "✗ " + humanize.Plural(failed, "schedule") + " failed"
	}
	return v, nil
}

// Due returns the state of a task of a schedule and the time when the task was due.
func (p page) Due(t jobs.Task) string {
	return string(t.State) + ", due " + ui.DueOf(t).In(p.Now.Location()).Format("2006-01-02 15:04")
}

// place returns the time zone of the schedule.
func (s scheduleView) place() *time.Location {
	if place, err := time.LoadLocation(s.Zone); err == nil {
		return place
	}
	return time.UTC
}
