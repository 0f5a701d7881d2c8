package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/jobs"
)

const (
	maxEarlierRuns = 10 // maximum number of earlier tasks shown
)

// earlierRuns are the earlier tasks of the same schedule or job.
type earlierRuns struct {
	Of   string // what the tasks have in common: the word "schedule" or the word "job"
	Runs []earlierRun
	Took string // median duration of the earlier tasks, and the duration of this task
}

type earlierRun struct {
	ID    int64
	State jobs.State
	Title string
}

// related adds the drawing of the dependencies and the earlier tasks of a task.
func (h *handler) related(ctx context.Context, v *taskView) error {
	var err error
	if v.Related, err = h.relatedOf(ctx, v.page, v.Task); err != nil {
		return err
	}
	if v.Related != nil {
		if err := v.Related.draw(ctx, h); err != nil {
			return err
		}
	}
	runs, err := admin.PreviousRuns(ctx, h.r, v.Task, maxEarlierRuns)
	v.Earlier = v.earlierRuns(runs)
	return err
}

// earlierRuns returns the list of earlier tasks that the page shows, oldest first. The parameter "runs" has the same tasks, newest first.
func (v *taskView) earlierRuns(runs []jobs.Task) *earlierRuns {
	if len(runs) == 0 {
		return nil
	}
	e := &earlierRuns{Of: "job"}
	if v.Task.Schedule != "" {
		e.Of = "schedule"
	}
	var took []time.Duration
	for _, t := range slices.Backward(runs) {
		run := earlierRun{ID: t.ID, State: t.State, Title: fmt.Sprintf("task %d %s", t.ID, t.State)}
		if t.State.Finished() {
			took = append(took, t.Duration)
			run.Title += ", took " + humanize.Took(t.Duration)
		}
		e.Runs = append(e.Runs, run)
	}
	if len(took) > 0 {
		slices.Sort(took)
		e.Took = "median " + humanize.Took(took[len(took)/2])
		if lasted, ok := present.Lasted(v.Task, v.page.Now); ok {
			e.Took += ", now " + humanize.Took(lasted)
		}
	}
	return e
}

// document returns a handler that responds with the whole arguments or the whole result of a task. The page of the task
// shows only the first part of long arguments or results.
func (h *handler) document(part func(jobs.Task) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if h.o.HideArgs {
			h.writeError(w, req, http.StatusForbidden, "Arguments are hidden on this server.")
			return
		}
		ctx, cancel := readContext(req)
		defer cancel()
		t, err := h.getTask(ctx, req)
		switch {
		case errors.Is(err, jobs.ErrNotFound) || err == nil && len(part(t)) == 0:
			h.writeError(w, req, http.StatusNotFound, "The task does not exist, or it has no such document.")
		case err != nil:
			h.fail(w, req, err)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d.json"`, t.ID))
			_, _ = w.Write(part(t))
		}
	}
}
