package web

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/internal/present"
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
	Runs    []jobs.Task // tasks of the schedule, oldest first
	Took    time.Duration
	Ran     bool
}

func (h *handler) schedules(ctx context.Context, req *http.Request) (string, view, error) {
	v := &schedulesView{page: h.newPage(req, "Schedules", "schedules")}
	list, err := h.r.Schedules(ctx)
	if err != nil {
		return "", nil, err
	}
	failed := 0
	for i, s := range list {
		view := scheduleView{Schedule: s, Paused: !s.PausedAt.IsZero(), JobText: v.Job(lifecycle.NewTask(&s.Spec, time.Time{}))}
		if s.LastState == jobs.Failed {
			failed++
		}
		if s.LastState.Finished() {
			view.Took, view.Ran = s.LastDuration, true
		}
		if i < maxSchedules {
			if view.Runs, err = h.r.ScheduleRuns(ctx, s.Name, maxRunsShown); err != nil {
				return "", nil, err
			}
			slices.Reverse(view.Runs)
		}
		view.PausedBy = humanize.Safe(s.PausedBy)
		v.Schedules = append(v.Schedules, view)
	}
	if failed > 0 {
		v.Title = "✗ " + humanize.Plural(failed, "schedule") + " failed"
	}
	return "schedules", v, nil
}

// Due returns the state of a task of a schedule and the time when the task was due.
func (p page) Due(t jobs.Task) string {
	return string(t.State) + ", due " + present.DueOf(t).Local().Format("2006-01-02 15:04")
}

// Tick returns the next time of a schedule as text. The text includes the day of the week or the date if the time of day
// alone is ambiguous.
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

// Every returns the cron expression of the schedule. It returns common expressions in words, such as "every hour".
func (s scheduleView) Every() string {
	return cmp.Or(map[string]string{"* * * * *": "every minute", "*/5 * * * *": "every 5 minutes", "*/10 * * * *": "every 10 minutes",
		"*/15 * * * *": "every 15 minutes", "*/30 * * * *": "every 30 minutes", "0 * * * *": "every hour", "@hourly": "every hour",
		"@daily": "every day at 00:00"}[s.Cron], s.Cron)
}
