package web

import (
	"context"
	"net/http"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

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
	list, more, err := h.started(ctx, filter)
	if err != nil {
		return nil, err
	}
	v.More = more
	v.Runs, err = h.newRuns(ctx, v.page, list)
	return v, err
}

// Looked is how many ended tasks the page looks at.
func (v *jobView) Looked() int { return lookTasks }

// started returns the running tasks of a filter and those that ended last, the
// latest first, and whether there may be more. There is no index of the tasks by
// job, so it looks at a limited number of ended tasks.
func (h *handler) started(ctx context.Context, filter jobs.Filter) (list []jobs.Task, more bool, err error) {
	filter.States = []jobs.State{jobs.Running}
	if list, err = h.r.List(ctx, filter, runner.Page{Limit: maxRuns}); err != nil {
		return nil, false, err
	}
	filter.States = jobs.Finished()
	ended, rest, err := admin.Store(h.r).ListPart(ctx, filter, admin.Part{Sort: admin.ByEnd, Limit: maxRuns, Look: lookTasks})
	list = append(list, ended...)
	list = list[:min(len(list), maxRuns)]
	return list, rest.ID > 0 || len(list) == maxRuns, err
}
