package web

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

type overviewView struct {
	page
	Problems    []problemView // the first maxProblems
	AllProblems int
	Empty       bool // whether the database has no task
	Alive       int  // number of workers that are not lost
	Slots       int  // number of slots of the workers that are not lost
	Running     int
	Waiting     int
	Oldest      time.Time // due time of the oldest pending task
	Failed      int       // failures in the last 24 hours; a task that failed twice counts twice
	StillFailed int       // tasks that failed in the last 24 hours and are still in the failed state
	Done        int
	Chart       *chart      // chart of the ended tasks; nil if no task has ended
	Queues      []queueView // the first perQueuePage queues whose names contain QueueText
	AllQueues   int         // number of queues whose names contain QueueText
	AskQueue    bool        // whether the page has a field for QueueText
	QueueText   string      // part of the names of the listed queues; empty for all queues
	Range       string      // chosen range of the chart
	Workers     []workerView
}

const (
	maxProblems  = 6   // number of problems that are shown
	perQueuePage = 100 // number of queues in the table
)

// problemView is a problem and its remedy.
type problemView struct {
	page
	Code          string
	Key           string // text that identifies the problem; it has no spaces
	Message, Hint string
	Cause         string // most frequent cause of the failures; empty if the problem is not about failures
	Link, Label   string // URL of the page that shows the problem, and the text of its link
	Action        string // action of the form: "queue-resume"; empty if the problem has no form
	Critical      bool   // whether no task can run
	Queue         string
}

type queueView struct {
	admin.QueueStatus
	FailedDay int
	Paused    bool
	PauseText string
	Limit     string // running tasks and their limit (1/2); empty if there is none
	Rate      string // rate limit (100/1m); empty if there is none
	Limited   bool   // whether a limit blocks every start now
	Hour      template.HTML
}

type workerView struct {
	admin.Worker
	Queues string
	Tasks  []jobs.Task
	More   int
}

// maxTasksShown is the number of running tasks in the line of a worker.
const maxTasksShown = 3

func (h *handler) overview(_ context.Context, req *http.Request) (view, error) {
	v := &overviewView{page: h.newPage(req, "")}
	queues, err := h.queues(req.Context())
	if err != nil {
		return nil, err
	}

	ctx, cancel := readContext(req) // the count may have taken all the time of the page
	defer cancel()

	s, err := ui.StatusOf(ctx, h.r, v.Now, queues, nil)
	if err != nil {
		return nil, err
	}

	v.Alive, v.Slots = s.Alive, s.Slots
	hour, err := h.lastHour(ctx, v.Now)
	if err != nil {
		return nil, err
	}

	v.QueueText, v.Range = humanize.Safe(req.FormValue("queue")), req.FormValue("range")
	v.AskQueue = len(s.Queues) > perQueuePage || v.QueueText != ""
	for _, q := range s.Queues {
		if strings.Contains(q.Name, v.QueueText) {
			v.AllQueues++
			if v.AllQueues <= perQueuePage {
				v.Queues = append(v.Queues, v.queue(q, s.Holds, hour))
			}
		}

		v.Running += q.Counts[jobs.Running]
		v.Waiting += q.Counts[jobs.Pending] + q.Counts[jobs.Blocked] + q.Counts[jobs.Retrying]
		v.Failed += q.Ended[jobs.Failed]
		v.StillFailed += q.Failed
		v.Done += q.Ended[jobs.Completed]
		if !q.Oldest.IsZero() && (v.Oldest.IsZero() || q.Oldest.Before(v.Oldest)) {
			v.Oldest = q.Oldest
		}
	}

	if v.Workers, err = h.workers(ctx, s.Workers); err != nil {
		return nil, err
	}

	causes := map[string]string{}
	if v.StillFailed > 0 {
		if causes, err = h.causes(ctx, v.Now.Add(-24*time.Hour)); err != nil {
			return nil, err
		}
	}

	v.AllProblems = len(s.Problems)
	for _, p := range s.Problems[:min(v.AllProblems, maxProblems)] {
		view := v.problem(p)
		if p.Code == "failed" {
			view.Cause = causes[p.About]
		}
		v.Problems = append(v.Problems, view)
	}

	if v.Chart, err = h.chart(ctx, v.page, v.Range); err != nil {
		return nil, err
	}
	if len(s.Queues) == 0 && len(s.Schedules) == 0 {
		ids, err := db.Of(h.r).IDs(ctx, jobs.Filter{Limit: 1})
		if err != nil {
			return nil, err
		}

		v.Empty = len(ids) == 0
	}

	v.Title = v.titleText()
	return v, nil
}

// manyPending is a number of pending tasks from which on pages share a count.
const manyPending = 100_000

// queues returns the counts of all queues, for which it may take longer than a
// page has. If there are many tasks, or if counting was slow (a slow disk, or
// many tasks that aren't pending), pages share the counts for ten times as long
// as they took.
func (h *handler) queues(ctx context.Context) ([]admin.QueueStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()

	list, err := h.counts.get("", func() ([]admin.QueueStatus, time.Duration, error) {
		began := time.Now()
		list, err := admin.Queues(ctx, h.r)
		took := time.Since(began)

		pending := 0
		for _, q := range list {
			pending += q.Counts[jobs.Pending]
		}

		if pending < manyPending && took < readTimeout/10 {
			return list, 0, err
		}
		return list, 10 * took, err
	})
	return slices.Clone(list), err
}

// chart returns the chart of the named span. Without a name it shows the
// shortest span in which a task ended. It returns nil if no task ended in any
// span.
func (h *handler) chart(ctx context.Context, p page, name string) (*chart, error) {
	isChosen := slices.ContainsFunc(chartSpans, func(s span) bool { return s.Name == name })
	for _, s := range chartSpans {
		if isChosen && s.Name != name {
			continue
		}

		trend, err := h.trends.get(s.Name, func() (trend, time.Duration, error) {
			trend, err := readTrend(ctx, h.r, s.step, int(s.length/s.step))
			return trend, s.fresh, err
		})
		if err != nil {
			return nil, err
		}
		if c := newChart(p, s, trend); isChosen || len(c.Steps) > 0 {
			return c, nil
		}
	}

	return nil, nil
}

// FurtherProblems is the number of problems that the page doesn't show.
func (v *overviewView) FurtherProblems() int { return v.AllProblems - len(v.Problems) }

// titleText returns the title of the page, which states the most important fact
// in a few words.
func (v *overviewView) titleText() string {
	switch {
	case v.Alive == 0 && v.Waiting > 0:
		return "! no worker"
	case v.StillFailed > 0:
		return fmt.Sprintf("✗ %s failed", humanize.Count(int64(v.StillFailed)))
	case v.Running > 0:
		return fmt.Sprintf("▶ %d running", v.Running)
	}
	return "Overview"
}

// Failures returns the text beside the number of tasks that are still failed:
// how many failures there were in that time. It is empty if both are equal.
func (v *overviewView) Failures(failures, tasks int) string {
	if failures == tasks {
		return ""
	}
	return humanize.Plural(failures, "failure")
}

func (v *overviewView) queue(q admin.QueueStatus, holds ui.Holds, hour []map[string]int) queueView {
	view := queueView{
		QueueStatus: q,
		FailedDay:   q.Ended[jobs.Failed],
		Paused:      !q.Pause.At.IsZero(),
		Hour:        sparkOf(hour, q.Name),
	}
	if view.Paused {
		view.PauseText = humanize.Safe(ui.Pause(q.Pause, v.Now))
	}
	if l, ok := holds.Limits[admin.Target{Kind: admin.QueueTarget, Name: q.Name}]; ok {
		view.Limit, view.Rate = ui.LimitRunning(l), ui.LimitRate(l)
	}

	view.Limited = holds.Limits.IsClosed(admin.QueueTarget, q.Name) || holds.Limits.IsClosed(admin.AllTarget, "")
	return view
}

// problem returns the view of a problem with a link or an action.
func (v *overviewView) problem(p ui.Problem) problemView {
	view := problemView{
		page:    v.page,
		Code:    p.Code,
		Key:     strings.Join(strings.Fields(p.Code+" "+humanize.Safe(p.About)), "-"),
		Message: humanize.Safe(p.Message),
		Hint:    humanize.Safe(p.Try),
		Label:   "Show",
	}
	switch p.Code {
	case "paused":
		view.Action, view.Label, view.Queue = "queue-resume", "Resume", p.About
	case "no_worker", "moved":
		view.Critical = true
	case "failed":
		view.Link = v.Find(search.KeyState, string(jobs.Failed), search.KeyQueue, p.About, search.KeySince, "1d") +
			"&sort=" + sortByCause
	case "no_job", "no_queue":
		view.Link = v.Find(search.KeyState, string(jobs.Pending), search.KeyQueue, p.About)
	case "lost_worker":
		view.Link = v.Find(search.KeyState, string(jobs.Running), search.KeyWorker, p.About)
	case "schedule_failed", "schedule_skips", "schedule_late", "schedule_waits":
		view.Link = v.Base + "/schedules/" + url.PathEscape(p.About)
	}

	return view
}

// workers returns the workers with their running tasks.
func (h *handler) workers(ctx context.Context, list []admin.Worker) ([]workerView, error) {
	var ids []int64
	for _, w := range list {
		ids = append(ids, w.Running[:min(len(w.Running), maxTasksShown)]...)
	}

	tasks, err := db.Of(h.r).ByID(ctx, ids)
	views := make([]workerView, len(list))
	for i, w := range list {
		views[i] = workerView{Worker: w, Queues: ui.ServedQueues(w, ", ")}
		views[i].Name = humanize.Safe(w.Name)
		for n, id := range w.Running {
			if t, ok := tasks[id]; ok && n < maxTasksShown {
				views[i].Tasks = append(views[i].Tasks, t)
			}
		}

		views[i].More = len(w.Running) - len(views[i].Tasks)
	}

	return views, err
}
