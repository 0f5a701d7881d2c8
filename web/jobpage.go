package web

import (
	"cmp"
	"context"
	"net/http"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

const (
	maxRuns   = 500     // tasks of the page of a job
	recentIDs = 100_000 // the server first searches among this many ids, because no index has the jobs
)

// jobView is the page of a job or a label.
type jobView struct {
	page
	Kind, Name string // Kind is job or label
	Tasks      string // URL of the list of these tasks
	Runs       *runs  // nil if no task has started
	More       bool   // whether there may be older tasks
}

func (h *handler) job(ctx context.Context, req *http.Request) (string, view, error) {
	v := &jobView{page: h.newPage(req, "", "tasks"), Kind: search.KeyJob, Name: req.FormValue("job")}
	filter := jobs.Filter{Jobs: []string{v.Name}}
	if label := req.FormValue("label"); label != "" {
		v.Kind, v.Name, filter = search.KeyLabel, label, jobs.Filter{Label: label}
	}
	if v.Name == "" || v.Name != humanize.Safe(v.Name) {
		return "", nil, &jobs.FieldError{Field: "job", Msg: "the page needs a job or a label"}
	}
	v.Title = v.Kind + " " + v.Name
	v.Tasks = v.Find(v.Kind, v.Name)
	filter.States = append(jobs.Finished(), jobs.Running)
	newest, err := h.r.IDs(ctx, jobs.Filter{}, runner.Page{Limit: 1})
	if err != nil {
		return "", nil, err
	}
	var list []jobs.Task
	if len(newest) > 0 {
		filter.After = max(newest[0]-recentIDs, 0)
	}
	if list, err = h.r.List(ctx, filter, runner.Page{Limit: maxRuns}); err != nil {
		return "", nil, err
	}
	if len(list) == 0 && filter.After > 0 {
		filter.After = 0
		if list, err = h.r.List(ctx, filter, runner.Page{Limit: maxRuns}); err != nil {
			return "", nil, err
		}
	}
	v.More = filter.After > 0 || len(list) == maxRuns
	v.Runs = h.newRuns(v.page, list)
	return "job", v, nil
}

// JobPage returns the URL of the page of a task's label or job.
func (p page) JobPage(t jobs.Task) string {
	key := cmp.Or(t.Label, t.Job)
	if t.Label != "" {
		return p.Base + "/jobs?label=" + escaped(key)
	}
	return p.Base + "/jobs?job=" + escaped(key)
}
