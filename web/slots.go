package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// slotDrawing draws the slots of a worker as rows, and the attempts in them as
// bars over time. An attempt doesn't record its slot, so it goes, in the order
// of the starts, into the first row that is free, or else into the one that
// becomes free first: the tasks of a batch share a slot.
type slotDrawing struct {
	worker  db.WorkerRuns
	s       span
	at      time.Time // time at the right end of the drawing
	from    time.Time // attempts that ended before this time may be missing
	rows    [][]db.Run
	Hidden  int // number of attempts in slots that are not drawn
	bars    []*slotBar
	Plot    plot
	Summary string
}

// slotBar is the bar of one attempt in a slot, or of several short attempts.
type slotBar struct {
	Slot     int // number of the slot, from 1
	From, To time.Time
	runs     []db.Run
	Link     string
	Name     string // name of the task of a single attempt, or how many attempts the bar has
	Result   string
}

func newSlotDrawing(w db.WorkerRuns, rows int, runs workerRuns, s span) *slotDrawing {
	d := &slotDrawing{worker: w, s: s, at: runs.at, from: runs.from, rows: make([][]db.Run, rows)}
	free := make([]time.Time, max(w.Slots, 1)) // time at which each slot becomes free
	for _, r := range w.Runs {
		slot := slices.IndexFunc(free, func(t time.Time) bool { return !t.After(r.StartedAt) })
		if slot < 0 {
			slot = slices.Index(free, slices.MinFunc(free, time.Time.Compare))
		}
		free[slot] = maxTime(free[slot], d.end(r))
		if slot < rows {
			d.rows[slot] = append(d.rows[slot], r)
		} else {
			d.Hidden++
		}
	}

	return d
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// begin returns the time at the left of the drawing.
func (d *slotDrawing) begin() time.Time { return d.at.Add(-d.s.length) }

// end returns the time at which an attempt ended, or the right end of the
// drawing if it's still running.
func (d *slotDrawing) end(r db.Run) time.Time {
	if r.FinishedAt.IsZero() {
		return d.at
	}
	return r.FinishedAt
}

// group makes bars of the attempts. Consecutive attempts of a row become one
// bar if they overlap, or if they begin in the same of the equal cells of the
// drawing and are shorter than a cell.
func (d *slotDrawing) group(cells int) {
	d.bars = nil
	cell := d.s.length / time.Duration(cells)
	isShort := func(r db.Run) bool { return d.end(r).Sub(r.StartedAt) < cell }
	cellOf := func(r db.Run) time.Duration { return r.StartedAt.Sub(d.begin()) / cell }
	for row, runs := range d.rows {
		var last *slotBar
		for _, r := range runs {
			isPart := last != nil && (last.To.After(r.StartedAt) ||
				isShort(last.runs[0]) && isShort(r) && cellOf(last.runs[0]) == cellOf(r))
			if !isPart {
				last = &slotBar{Slot: row + 1, From: r.StartedAt}
				d.bars = append(d.bars, last)
			}
			last.runs = append(last.runs, r)
			last.To = maxTime(last.To, d.end(r))
		}
	}
}

const slotHeight = 16 // in pixels

// draw draws the bars.
func (d *slotDrawing) draw(p page, names map[int64]jobs.Task) {
	d.Summary = humanize.Plural(len(d.worker.Runs), "run")
	if len(d.worker.Runs) > 0 {
		d.Summary += ": " + stateCounts(statesOf(d.worker.Runs))
	}

	bottom := plotTop + len(d.rows)*slotHeight
	d.Plot = plot{
		Class:      "slots",
		Label:      d.Summary,
		Height:     bottom + 20,
		ScaleWidth: 28,
		Axis:       bottom,
		Ticks:      timeMarks(d.begin().In(p.Now.Location()), d.s.length, d.s.ticks),
	}
	// The drawing knows nothing of the time before its worker started, and
	// after it ended.
	known := d.x(maxTime(d.from, d.worker.StartedAt))
	d.Plot.Off = []rect{{"off", 0, plotTop, known, float64(bottom - plotTop)}}
	if !d.worker.EndedAt.IsZero() {
		until := d.x(d.worker.EndedAt)
		d.Plot.Off = append(d.Plot.Off, rect{"off", until, plotTop, 100 - until, float64(bottom - plotTop)})
	}

	for row := range d.rows {
		y := plotTop + (row+1)*slotHeight
		d.Plot.Lines = append(d.Plot.Lines, y)
		d.Plot.Scale = append(d.Plot.Scale, mark{Y: y - 8, Text: strconv.Itoa(row + 1)})
	}

	for _, b := range d.bars {
		text := b.describe(p, d.worker.Name, names)
		d.Plot.Bars = append(d.Plot.Bars, bar{b.Link, text, []rect{d.rect(b)}})
	}
}

// x returns the place of a time, in percent of the width.
func (d *slotDrawing) x(t time.Time) float64 {
	return min(max(float64(t.Sub(d.begin()))*100/float64(d.s.length), 0), 100)
}

// rect draws a bar. A bar of several attempts has the colour of a failed one if
// there is one.
func (d *slotDrawing) rect(b *slotBar) rect {
	states, class := statesOf(b.runs), string(taskspec.Snoozed)
	for _, s := range []jobs.State{jobs.Cancelled, jobs.Completed, jobs.Running, jobs.Failed} {
		if states[s] > 0 {
			class = string(s)
		}
	}

	if len(b.runs) > 1 {
		class += " some"
	}

	x, y := d.x(b.From), float64(plotTop+(b.Slot-1)*slotHeight+2)
	width := max(d.x(b.To)-x, 0.25)
	return rect{class, min(x, 100-width), y, width, slotHeight - 3}
}

func statesOf(runs []db.Run) map[jobs.State]int {
	counts := map[jobs.State]int{}
	for _, r := range runs {
		counts[r.State]++
	}
	return counts
}

// describe sets the texts and the link of a bar, and returns what its tip says.
func (b *slotBar) describe(p page, worker string, names map[int64]jobs.Task) string {
	b.From, b.To = b.From.In(p.Now.Location()), b.To.In(p.Now.Location())
	b.Result = stateCounts(statesOf(b.runs))
	b.Name = fmt.Sprintf("%d runs", len(b.runs))
	b.Link = p.Find(search.KeyWorker, worker, search.KeySince, searchTime(b.From),
		search.KeyUntil, searchTime(b.To.Add(time.Millisecond)))
	text := b.Name
	if len(b.runs) == 1 {
		id, name := b.runs[0].TaskID, "deleted"
		if t, ok := names[id]; ok {
			name = p.ShortJob(t)
		}
		b.Result = string(b.runs[0].State)
		b.Name = fmt.Sprintf("%d %s", id, name)
		b.Link = fmt.Sprintf("%s/tasks/%d", p.Base, id)
		text = "task " + b.Name
	}

	return fmt.Sprintf("%s: %s, slot %d, %s–%s, %s", text, b.Result, b.Slot,
		b.From.Format(time.TimeOnly), b.To.Format("15:04:05 MST"), b.Took())
}

// Took returns the duration of an attempt, or the length of the period of
// several attempts.
func (b *slotBar) Took() string { return humanize.Took(b.To.Sub(b.From)) }

// Table returns the bars, the latest first.
func (d *slotDrawing) Table() []*slotBar {
	return slices.SortedStableFunc(slices.Values(d.bars), func(a, b *slotBar) int {
		return cmp.Or(b.From.Compare(a.From), cmp.Compare(a.Slot, b.Slot))
	})
}
