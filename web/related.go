package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

const (
	maxDependencies = 20 // of a task's dependencies are shown, to each side
	maxEarlierRuns  = 10 // of a task's earlier runs are shown
)

// others are tasks that have to do with a task.
type others struct {
	page
	List []runner.Dependency
	More bool // than these
}

// earlier are the runs before a task of what it runs.
type earlier struct {
	Of   string // schedule or job
	Runs []earlierRun
	Took string // how long they took, and this one
}

type earlierRun struct {
	ID    int64
	State jobs.State
	Title string
}

// related adds the tasks that a task waits for, those that wait for it, and its earlier runs.
func (h *handler) related(ctx context.Context, v *taskView) error {
	on, by, err := h.r.Dependencies(ctx, v.Task.ID, maxDependencies+1)
	if err != nil {
		return err
	}
	v.After, v.Before = v.others(on), v.others(by)
	runs, err := admin.PreviousRuns(ctx, h.r, v.Task, maxEarlierRuns)
	v.Earlier = v.earlier(runs)
	return err
}

func (v *taskView) others(list []runner.Dependency) *others {
	if len(list) == 0 {
		return nil
	}
	return &others{page: v.page, List: list[:min(len(list), maxDependencies)], More: len(list) > maxDependencies}
}

// earlier shows runs, the last first, as a strip, the oldest first.
func (v *taskView) earlier(runs []jobs.Task) *earlier {
	if len(runs) == 0 {
		return nil
	}
	e := &earlier{Of: "job"}
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
		if lasted, ok := runner.Lasted(v.Task, v.page.Now); ok {
			e.Took += ", now " + humanize.Took(lasted)
		}
	}
	return e
}

// document answers with all of a task's arguments or result, of which a page shows the first part.
func (h *handler) document(part func(jobs.Task) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if h.o.HideArgs {
			h.writeError(w, req, http.StatusForbidden, "Arguments are hidden here.")
			return
		}
		ctx, cancel := readContext(req)
		defer cancel()
		id, _ := strconv.ParseInt(req.PathValue("id"), 10, 64)
		t, err := h.r.Get(ctx, id)
		switch {
		case errors.Is(err, jobs.ErrNotFound) || err == nil && len(part(t)) == 0:
			h.writeError(w, req, http.StatusNotFound, "There is no such task, or it has none.")
		case err != nil:
			h.logger.Warn("document", "task", id, "err", err)
			h.writeError(w, req, http.StatusServiceUnavailable, sentence(err))
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d.json"`, id))
			_, _ = w.Write(part(t))
		}
	}
}
