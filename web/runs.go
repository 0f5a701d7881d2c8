package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// runs is the history of a job, a label or a schedule, as its page shows it.
type runs struct {
	N, Failed, Unfinished int
	Rate                  string // failed tasks in percent of all ended tasks
	Strip                 plot   // durations of the last tasks
	Longest               string // longest duration in Strip
	P50, P95              string
	Since                 time.Time  // time at which the oldest task of the history was created
	Errors                []runError // last failed tasks, and tasks that failed before they ran again, the latest first
}

type runError struct {
	jobs.Task
	Text string
}

const (
	maxStrip    = 60 // maximum number of bars in the drawing of the durations
	maxErrors   = 5
	stripHeight = 60
)

// newRuns returns the history of the tasks in a list, which begins with the
// latest task. It returns nil for an empty list. A task that failed and was
// then retried counts as failed: a retry does not rewrite the history.
func (h *handler) newRuns(ctx context.Context, p page, list []jobs.Task) (*runs, error) {
	if len(list) == 0 {
		return nil, nil
	}

	h.redactAll(list)
	before, err := failedBefore(ctx, h.r, list)
	if err != nil {
		return nil, err
	}

	oldest := slices.MinFunc(list, func(a, b jobs.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	v := &runs{N: len(list), Since: oldest.CreatedAt}
	var took []time.Duration
	for _, t := range list {
		switch {
		case t.State == jobs.Failed || before[t.ID]:
			v.Failed++
		case !t.State.Finished():
			v.Unfinished++
		}
		if t.State.Finished() && !t.StartedAt.IsZero() {
			took = append(took, t.Duration)
		}
	}

	if all := v.N - v.Unfinished; all > 0 {
		v.Rate = fmt.Sprintf("%.1f %%", float64(v.Failed)*100/float64(all))
	}
	if slices.Sort(took); len(took) > 0 {
		v.P50, v.P95 = humanize.Took(rank(took, 50)), humanize.Took(rank(took, 95))
	}

	v.setStrip(p, list, before)
	return v, h.setErrors(ctx, v, list, before)
}

// setErrors sets the last errors.
func (h *handler) setErrors(ctx context.Context, v *runs, list []jobs.Task, before map[int64]bool) error {
	for _, t := range list {
		switch {
		case len(v.Errors) == maxErrors:
			return nil
		case t.State == jobs.Failed:
			v.Errors = append(v.Errors, runError{t, errorLine(t)})
		case before[t.ID]:
			failed, err := h.lastFailure(ctx, t)
			if err != nil {
				return err
			}

			v.Errors = append(v.Errors, runError{failed, errorLine(failed) + " · then " + string(t.State)})
		}
	}
	return nil
}

// lastFailure returns a task as it was after its last failed attempt: a retry
// must not hide that a backup failed for two nights.
func (h *handler) lastFailure(ctx context.Context, t jobs.Task) (jobs.Task, error) {
	attempts, err := admin.Attempts(ctx, h.r, t)
	for _, a := range attempts {
		if a.State == jobs.Failed {
			t.Reason, t.ExitCode, t.Signal, t.Error, t.ErrorLine = a.Reason, a.ExitCode, a.Signal, a.Error, a.ErrorLine
			t.State, t.FinishedAt = jobs.Failed, a.FinishedAt
		}
	}

	return h.redact(t), err
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

const maxRuns = 500 // maximum number of tasks on the page of a job

// jobView is the page of a job or a label.
type jobView struct {
	page
	Kind, Name string // Kind is job or label
	Tasks      string // URL of the list of all tasks of this job or label
	Runs       *runs  // history of the job or label; nil if no task has started
	More       bool   // whether there may be older tasks than those in Runs
}

func (h *handler) job(ctx context.Context, req *http.Request) (view, error) {
	v := &jobView{page: h.newPage(req, ""), Kind: search.KeyJob, Name: req.FormValue("job")}
	filter := jobs.Filter{Jobs: []string{v.Name}}
	if label := req.FormValue("label"); label != "" {
		v.Kind, v.Name, filter = search.KeyLabel, label, jobs.Filter{Label: label}
	}
	if v.Name == "" || v.Name != humanize.Safe(v.Name) {
		return nil, &jobs.FieldError{Field: "job", Msg: "the page needs a job or a label"}
	}

	v.Title = v.Kind + " " + v.Name
	v.Tasks = v.Find(v.Kind, v.Name)
	list, more, err := h.readStarted(ctx, filter)
	if err != nil {
		return nil, err
	}

	v.More = more
	v.Runs, err = h.newRuns(ctx, v.page, list)
	return v, err
}

// Looked is how many ended tasks the page looks at.
func (v *jobView) Looked() int { return lookTasks }

// readStarted returns the running tasks of a filter and those that ended last,
// the latest first, and whether there may be more. There is no index of the
// tasks by job, so it looks at a limited number of ended tasks.
func (h *handler) readStarted(ctx context.Context, filter jobs.Filter) (list []jobs.Task, more bool, err error) {
	filter.States, filter.Limit = []jobs.State{jobs.Running}, maxRuns
	if list, err = h.r.List(ctx, filter); err != nil {
		return nil, false, err
	}

	filter.States = taskspec.Finished()
	ended, rest, err := db.Of(h.r).ListPart(ctx, filter, db.Part{Sort: db.ByEnd, Limit: maxRuns, Look: lookTasks})
	list = append(list, ended...)
	list = list[:min(len(list), maxRuns)]
	return list, rest.ID > 0 || len(list) == maxRuns, err
}

// failedBefore returns the ids of those tasks that have failed for good and
// were then retried. Their state tells only of the retry.
func failedBefore(ctx context.Context, r *runner.Runner, list []jobs.Task) (map[int64]bool, error) {
	ids := make([]int64, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	return db.Of(r).FailedBefore(ctx, ids)
}
