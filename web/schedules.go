package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
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

func (p page) schedule(s jobs.Schedule) scheduleView {
	s.PausedBy = humanize.Safe(s.PausedBy)
	return scheduleView{
		Schedule: s,
		Paused:   !s.PausedAt.IsZero(),
		JobText:  p.Job(taskspec.NewTask(&s.Spec, time.Time{})),
	}
}

func (h *handler) schedules(ctx context.Context, req *http.Request) (view, error) {
	v := &schedulesView{page: h.newPage(req, "Schedules")}
	list, err := admin.Schedules(ctx, h.r)
	if err != nil {
		return nil, err
	}

	failed := 0
	for i, s := range list {
		view := v.schedule(s)
		if s.LastState == jobs.Failed {
			failed++
		}
		if i < maxSchedules {
			if view.Runs, err = ui.ScheduleRuns(ctx, h.r, s.Name, maxRunsShown); err != nil {
				return nil, err
			}

			slices.Reverse(view.Runs)
		}

		v.Schedules = append(v.Schedules, view)
	}

	if failed > 0 {
		v.Title = "✗ " + humanize.Plural(failed, "schedule") + " failed"
	}

	return v, nil
}

// Due returns the state of a task of a schedule and the time when the task was
// due.
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

const (
	ticksShown = 5
	maxSample  = 200 // maximum number of tasks on the page of a schedule
)

// schedulePage is the page of one schedule.
type schedulePage struct {
	page
	Schedule scheduleView
	Ticks    []tickView
	Runs     *runs // history of the schedule; nil if the schedule has no task
}

// tickView is a future tick, in the zone of the schedule and in the zone of the
// page.
type tickView struct {
	At          time.Time
	There, Here string
}

func (h *handler) schedule(ctx context.Context, req *http.Request) (view, error) {
	s, err := admin.Schedule(ctx, h.r, req.PathValue("name"))
	if err != nil {
		return nil, err
	}

	v := &schedulePage{page: h.newPage(req, "Schedule "+s.Name)}
	v.Schedule = v.schedule(s)
	const format = "Mon 2 Jan 2006 15:04:05 MST"
	ticks, err := admin.NextTicks(s, ticksShown)
	if err != nil {
		return nil, err
	}

	for _, at := range ticks {
		there, here := at.In(v.Schedule.place()), at.In(v.Now.Location())
		v.Ticks = append(v.Ticks, tickView{at, there.Format(format), here.Format(format)})
	}

	list, err := ui.ScheduleRuns(ctx, h.r, s.Name, maxSample)
	if err != nil {
		return nil, err
	}
	if s.LastState == jobs.Failed {
		v.Title = "✗ " + v.Title
	}

	v.Runs, err = h.newRuns(ctx, v.page, list)
	return v, err
}
