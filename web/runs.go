package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// runs is the history of a job, a label or a schedule, as its page shows it.
type runs struct {
	N, Failed, Unfinished int
	Rate                  string // failed tasks in percent of all ended tasks
	Strip                 plot   // durations of the last tasks
	Longest               string // longest duration in Strip
	P50, P95              string
	Since                 time.Time // time at which the oldest task of the history was created
	Slowest               []jobs.Task
	Errors                []runError // last failed tasks, and tasks that failed before they ran again, the latest first
	Again                 int        // number of further tasks among the last maxStrip of which an attempt failed
}

type runError struct {
	jobs.Task
	Text string
}

const (
	maxStrip    = 60 // maximum number of bars in the drawing of the durations
	maxSlowest  = 5
	maxErrors   = 5
	stripHeight = 60
)

// newRuns returns the history of the tasks in a list, which begins with the
// latest task. It returns nil for an empty list. A task that failed and was then
// retried counts as failed: a retry does not rewrite the history.
func (h *handler) newRuns(ctx context.Context, p page, list []jobs.Task) (*runs, error) {
	if len(list) == 0 {
		return nil, nil
	}
	before, err := admin.FailedBefore(ctx, h.r, list)
	if err != nil {
		return nil, err
	}
	oldest := slices.MinFunc(list, func(a, b jobs.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	v := &runs{N: len(list), Since: oldest.CreatedAt}
	var ended []jobs.Task // finished tasks that have started, the oldest first
	for _, t := range slices.Backward(list) {
		switch {
		case t.State == jobs.Failed || before[t.ID]:
			v.Failed++
		case !t.State.Finished():
			v.Unfinished++
		}
		if t.State.Finished() && !t.StartedAt.IsZero() {
			ended = append(ended, t)
		}
	}
	if all := v.N - v.Unfinished; all > 0 {
		v.Rate = fmt.Sprintf("%.1f %%", float64(v.Failed)*100/float64(all))
	}
	v.setStrip(p, list, before)
	v.setTimes(ended)
	for i, t := range list {
		var failed *jobs.Task
		var err error
		if i < maxStrip && t.State != jobs.Failed {
			failed, err = h.failedFirst(ctx, t)
		}
		switch {
		case err != nil:
			return nil, err
		case failed != nil:
			if !before[t.ID] { // else it is one of the failed tasks
				v.Again++
			}
			t.FinishedAt = failed.FinishedAt
			v.addError(t, h.errorLine(*failed)+" · then "+string(t.State))
		case t.State == jobs.Failed:
			v.addError(t, h.errorLine(t))
		}
	}
	return v, nil
}

func (v *runs) addError(t jobs.Task, text string) {
	if len(v.Errors) < maxErrors {
		v.Errors = append(v.Errors, runError{t, text})
	}
}

// failedFirst returns a task as it was after its last failed attempt, or nil if
// no attempt has failed: a retry must not hide that a backup failed for two
// nights.
func (h *handler) failedFirst(ctx context.Context, t jobs.Task) (*jobs.Task, error) {
	attempts, err := h.r.Attempts(ctx, t)
	for _, a := range slices.Backward(attempts) {
		if a.State == jobs.Failed {
			t.Reason, t.ExitCode, t.Signal, t.Error, t.ErrorLine = a.Reason, a.ExitCode, a.Signal, a.Error, a.ErrorLine
			t.State, t.FinishedAt = jobs.Failed, a.FinishedAt
			return &t, err
		}
	}
	return nil, err
}

// setTimes sets the percentiles and the slowest tasks.
func (v *runs) setTimes(ended []jobs.Task) {
	if len(ended) == 0 {
		return
	}
	slowest := slices.SortedStableFunc(slices.Values(ended), func(a, b jobs.Task) int { return cmp.Compare(b.Duration, a.Duration) })
	v.Slowest = slowest[:min(len(slowest), maxSlowest)]
	var sorted []time.Duration
	for _, t := range slices.Backward(slowest) {
		sorted = append(sorted, t.Duration)
	}
	v.P50, v.P95 = humanize.Took(admin.Rank(sorted, 50)), humanize.Took(admin.Rank(sorted, 95))
}

// setStrip draws the durations of the last tasks as bars.
func (v *runs) setStrip(p page, list []jobs.Task, before map[int64]bool) {
	list = list[:min(len(list), maxStrip)]
	longest := time.Duration(0)
	for _, t := range list {
		lasted, _ := ui.Lasted(t, p.Now)
		longest = max(longest, lasted)
	}
	v.Longest = humanize.Took(longest)
	v.Strip = plot{Label: "Duration of the last task", Height: stripHeight + 18, Lines: []int{plotTop, plotTop + stripHeight}}
	if len(list) > 1 {
		v.Strip.Label = fmt.Sprintf("Durations of the last %d tasks", len(list))
	}
	for _, t := range slices.Backward(list) {
		lasted, _ := ui.Lasted(t, p.Now)
		class, state := string(t.State), string(t.State)
		if before[t.ID] && t.State != jobs.Failed {
			class, state = string(jobs.Failed), "failed, retried: "+state
		}
		due := ui.DueOf(t).In(p.Now.Location()).Format("Mon 2 Jan 15:04 MST")
		text := fmt.Sprintf("task %d %s, %s, took %s", t.ID, state, due, humanize.Took(lasted))
		height := max(float64(lasted)/float64(max(longest, 1))*stripHeight, 2)
		v.Strip.Bars = append(v.Strip.Bars, column(len(v.Strip.Bars), maxStrip, class, p.taskLink(t.ID, t.State, nil), text,
			plotTop, stripHeight, 0, height))
	}
}
