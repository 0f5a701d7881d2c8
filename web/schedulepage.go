package web

import (
	"context"
	"net/http"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

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

// tickView is a future tick, in the zone of the schedule and in the zone of the page.
type tickView struct {
	At          time.Time
	There, Here string
}

func (h *handler) schedule(ctx context.Context, req *http.Request) (view, error) {
	s, err := h.r.GetSchedule(ctx, req.PathValue("name"))
	if err != nil {
		return nil, err
	}
	v := &schedulePage{page: h.newPage(req, "Schedule "+s.Name)}
	v.Schedule = scheduleView{Schedule: s, Paused: !s.PausedAt.IsZero(), JobText: v.Job(taskspec.NewTask(&s.Spec, time.Time{}))}
	v.Schedule.PausedBy = humanize.Safe(s.PausedBy)
	const format = "Mon 2 Jan 2006 15:04:05 MST"
	ticks, err := admin.NextTicks(s, ticksShown)
	if err != nil {
		return nil, err
	}
	for _, at := range ticks {
		v.Ticks = append(v.Ticks, tickView{at, at.In(v.Schedule.place()).Format(format), at.In(v.Now.Location()).Format(format)})
	}
	list, err := admin.ScheduleRuns(ctx, h.r, s.Name, maxSample)
	if err != nil {
		return nil, err
	}
	if s.LastState == jobs.Failed {
		v.Title = "✗ " + v.Title
	}
	v.Runs, err = h.newRuns(ctx, v.page, list)
	return v, err
}
