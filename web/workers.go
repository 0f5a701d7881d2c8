package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/runner/admin"
)

const (
	maxEnds     = 10_000 // maximum number of ended attempts that the page of the workers reads
	maxBars     = 300    // maximum number of bars on the page
	maxRows     = 32     // maximum number of drawn slots of a worker
	maxAllRows  = 100    // maximum number of drawn slots of all workers together
	finestCells = 240    // largest number of cells of a drawing; short runs that begin in the same cell become one bar
)

var spans = []span{
	{Name: "10m", length: 10 * time.Minute, ticks: 2 * time.Minute, fresh: 2 * time.Second},
	{Name: "1h", length: time.Hour, ticks: 10 * time.Minute, fresh: 10 * time.Second},
	{Name: "6h", length: 6 * time.Hour, ticks: time.Hour, fresh: time.Minute},
}

// workersPage shows which attempts each worker ran, and when.
type workersPage struct {
	page
	Spans   []tab
	Only    string    // name of the worker that the page shows; empty for all
	All     string    // URL of the page with all workers
	From    time.Time // attempts that ended before this time may be missing; zero if the page has all of them
	Workers []workerStrip
	More    int // number of workers that the page leaves out
}

// MaxEnds is how many ended attempts the page reads.
func (v *workersPage) MaxEnds() int { return maxEnds }

// workerStrip is a worker with a drawing of its slots over time.
type workerStrip struct {
	Name, State string // State is the state of the worker as in admin.Worker, or "ended"
	Queues      string
	Slots       string // number of slots
	EndedAt     time.Time
	Tasks       string // URL of the list of the worker's tasks
	Drawing     *slotDrawing
	worker      db.WorkerRuns
}

// workerRuns are the attempts of all workers in a span of time.
type workerRuns struct {
	at   time.Time // end of the span
	from time.Time // attempts that ended earlier may be missing
	list []db.WorkerRuns
	live []admin.Worker
}

func (h *handler) runsIn(ctx context.Context, s span, now time.Time) (workerRuns, error) {
	return h.workerRuns.get(s.Name, func() (w workerRuns, fresh time.Duration, err error) {
		w.at = now
		if w.list, w.from, err = db.Of(h.r).RunsByWorker(ctx, now.Add(-s.length), maxEnds); err != nil {
			return w, 0, err
		}
		w.live, err = admin.Workers(ctx, h.r)
		return w, s.fresh, err
	})
}

func (h *handler) workersPage(ctx context.Context, req *http.Request) (view, error) {
	v := &workersPage{page: h.newPage(req, "Workers"), Only: humanize.Safe(req.FormValue("worker"))}
	s := spans[0]
	if i := slices.IndexFunc(spans, func(s span) bool { return s.Name == req.FormValue("span") }); i >= 0 {
		s = spans[i]
	}

	v.All = v.Base + "/workers?span=" + s.Name
	link := v.Base + "/workers?"
	if v.Only != "" {
		link += "worker=" + escape(v.Only) + "&"
	}

	v.Spans = spanTabs(spans, s, link+"span=")
	runs, err := h.runsIn(ctx, s, v.Now)
	if err != nil {
		return nil, err
	}

	begin := runs.at.Add(-s.length)
	if runs.from.After(begin.Add(s.length / finestCells)) {
		v.From = runs.from
	}

	v.Workers = v.strips(runs)
	drawings := v.place(runs, s)
	var ids []int64
	for _, d := range drawings {
		for _, b := range d.bars {
			ids = append(ids, b.runs[0].TaskID)
		}
	}

	names, err := db.Of(h.r).Names(ctx, ids)
	if err != nil {
		return nil, err
	}

	for _, d := range drawings {
		d.draw(v.page, names)
	}

	return v, nil
}

// strips returns the workers of the page: those that live, in the order of
// their starts, and then those that have ended.
func (v *workersPage) strips(runs workerRuns) (list []workerStrip) {
	add := func(w db.WorkerRuns, state, queues string) {
		name := humanize.Safe(w.Name)
		if v.Only != "" && v.Only != name {
			return
		}

		list = append(list, workerStrip{Name: name, State: state, Queues: queues, Slots: humanize.Plural(w.Slots, "slot"),
			EndedAt: w.EndedAt, Tasks: v.Find(search.KeyWorker, w.Name), worker: w})
	}
	live := map[string]bool{}
	for _, w := range runs.live {
		live[w.ID] = true
		strip := db.WorkerRuns{ID: w.ID, Name: w.Name, Slots: w.Slots, StartedAt: w.StartedAt}
		if i := slices.IndexFunc(runs.list, func(r db.WorkerRuns) bool { return r.ID == w.ID }); i >= 0 {
			strip.Runs = runs.list[i].Runs
		}
		add(strip, string(w.State), ui.ServedQueues(w, ", "))
	}

	for _, w := range slices.Backward(runs.list) {
		switch {
		case live[w.ID]:
		case w.EndedAt.IsZero(): // this worker has not ended, but has sent no heartbeat for two leases
			add(w, string(admin.WorkerLost), "")
		default:
			add(w, "ended", "")
		}
	}

	return list
}

// place computes the bars of all drawings. It puts more and more short runs
// into one bar until the page has at most maxBars bars. The drawings together
// have at most maxAllRows slots, and the page leaves out the remaining workers.
func (v *workersPage) place(runs workerRuns, s span) (drawings []*slotDrawing) {
	room := maxAllRows
	for i := range v.Workers {
		w := &v.Workers[i]
		rows := min(w.worker.Slots, maxRows)
		if room -= rows; room < 0 {
			v.More = len(v.Workers) - i
			v.Workers = v.Workers[:i]
			break
		}
		w.Drawing = newSlotDrawing(w.worker, rows, runs, s)
		drawings = append(drawings, w.Drawing)
	}

	for cells := finestCells; ; cells /= 2 {
		n := 0
		for _, d := range drawings {
			d.group(cells)
			n += len(d.bars)
		}

		if n <= maxBars || cells == 1 {
			return drawings
		}
	}
}
