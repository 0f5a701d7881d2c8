package web

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

const (
	maxRunsShown = 20
	maxSchedules = 200 // schedules whose tasks are shown
)

type schedulesView struct {
	page
	Schedules []scheduleView
}

type scheduleView struct {
	jobs.Schedule
	JobText string
	Paused  bool
	Runs    []runView // tasks of the schedule, oldest first
	Took    time.Duration
	Ran     bool
}

// runView is a task of a schedule.
type runView struct {
	jobs.Task
	Due time.Time
}

func (h *handler) schedules(ctx context.Context, req *http.Request) (string, view, error) {
	v := &schedulesView{page: h.newPage(req, "Schedules", "schedules")}
	list, err := h.r.Schedules(ctx)
	if err != nil {
		return "", nil, err
	}
	failed := 0
	for i, s := range list {
		view := scheduleView{Schedule: s, Paused: !s.PausedAt.IsZero(), JobText: v.Job(s.Spec.Task(time.Time{}))}
		if s.LastState == jobs.Failed {
			failed++
		}
		if s.LastState.Finished() {
			view.Took, view.Ran = s.LastDuration, true
		}
		if i < maxSchedules {
			runs, err := h.r.ScheduleRuns(ctx, s.Name, maxRunsShown)
			if err != nil {
				return "", nil, err
			}
			for n := len(runs) - 1; n >= 0; n-- {
				view.Runs = append(view.Runs, runView{runs[n], tickOf(runs[n])})
			}
		}
		view.PausedBy = humanize.Safe(s.PausedBy)
		v.Schedules = append(v.Schedules, view)
	}
	if failed > 0 {
		v.Title = "✗ " + humanize.Plural(failed, "schedule") + " failed"
	}
	return "schedules", v, nil
}

// Tick returns the next time of a schedule. It includes the day of the week or the date if the time of day is
// ambiguous.
func (p page) Tick(t time.Time) template.HTML {
	format := "2 Jan 15:04"
	switch ahead := t.Sub(p.Now); {
	case ahead < 20*time.Hour:
		format = "15:04"
	case ahead < 6*24*time.Hour:
		format = "Mon 15:04"
	}
	return p.moment(t, t.Local().Format(format))
}

// tickOf returns the time at which a task of a schedule was due.
func tickOf(t jobs.Task) time.Time {
	if t.Tick.IsZero() {
		return t.RunAt
	}
	return t.Tick
}

// Every returns a cron expression in words if it is a common one.
func (s scheduleView) Every() string {
	return cmp.Or(map[string]string{"* * * * *": "every minute", "*/5 * * * *": "every 5 minutes", "*/10 * * * *": "every 10 minutes",
		"*/15 * * * *": "every 15 minutes", "*/30 * * * *": "every 30 minutes", "0 * * * *": "every hour", "@hourly": "every hour",
		"@daily": "every day at 00:00"}[s.Cron], s.Cron)
}
