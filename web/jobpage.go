package web

import (
	"context"
	"fmt"
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
	Looked     int    // maximum number of tasks that the server examines to find the tasks of Runs
	Further    string // URL of this page with a larger value of Looked; empty if no larger value would show more tasks
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
	look, err := lookOf(req.FormValue("look"), filter, sortByEnd)
	if err != nil {
		return nil, err
	}
	list, whole, err := h.started(ctx, filter, look)
	if err != nil {
		return nil, err
	}
	v.More = !whole || len(list) == maxRuns
	if v.Looked = look; !whole && len(list) < maxRuns {
		v.Further = fmt.Sprintf("%s/jobs?%s=%s&look=%d", v.Base, v.Kind, escaped(v.Name), min(look*lookFurther, maxLook))
	}
	if v.Runs, err = h.newRuns(ctx, v.page, list); err != nil {
		return nil, err
	}
	return v, nil
}

// started returns the running tasks of a filter and those that ended last, the
// latest first. There is no index of the tasks by job, so it examines at most
// look ended tasks; whole says whether these were all.
func (h *handler) started(ctx context.Context, filter jobs.Filter, look int) (list []jobs.Task, whole bool, err error) {
	filter.States = []jobs.State{jobs.Running}
	if list, err = h.r.List(ctx, filter, runner.Page{Limit: maxRuns}); err != nil {
		return nil, false, err
	}
	filter.States = jobs.Finished()
	ended, rest, err := admin.Store(h.r).ListPart(ctx, filter, admin.Part{Sort: admin.ByEnd, Limit: maxRuns, Look: look})
	list = append(list, ended...)
	return list[:min(len(list), maxRuns)], rest.ID == 0, err
}
