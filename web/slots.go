package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
)

// slotDrawing draws the slots of a worker as rows, and the attempts in them as bars over time. An attempt does not record its slot. So the
// drawing puts each attempt, in the order of the starts, into the first row that is free, and draws no more rows than the worker has slots.
// If no row is free, the attempt goes to the row that becomes free first. This happens to the tasks of a batch, because they share a slot.
type slotDrawing struct {
	worker  admin.WorkerRuns
	s       span
	at      time.Time // time at the right end of the drawing
	from    time.Time // attempts that ended before this time may be missing
	rows    [][]admin.Run
	Hidden  int // number of attempts in slots that are not drawn
	bars    []*slotBar
	Plot    plot
	Summary string
}

// slotBar is the bar of one attempt in a slot, or of several short attempts.
type slotBar struct {
	Slot     int // number of the slot, from 1
	From, To time.Time
	N        int   // number of attempts
	ID       int64 // id of the task that the first attempt of the bar belongs to
	states   map[jobs.State]int
	Link     string
	Name     string // name of the task of a single attempt, or how many attempts the bar has
	Result   string
}

func newSlotDrawing(w admin.WorkerRuns, rows int, runs workerRuns, s span) *slotDrawing {
	d := &slotDrawing{worker: w, s: s, at: runs.at, from: runs.from, rows: make([][]admin.Run, rows)}
	free := make([]time.Time, max(w.Slots, 1)) // time at which each slot becomes free
	for _, r := range w.Runs {
		slot := slices.IndexFunc(free, func(t time.Time) bool { return !t.After(r.StartedAt) })
		if slot < 0 {
			slot = slices.Index(free, slices.MinFunc(free, time.Time.Compare))
		}
		if end := d.end(r); end.After(free[slot]) {
			free[slot] = end
		}
		if slot < rows {
			d.rows[slot] = append(d.rows[slot], r)
		} else {
			d.Hidden++
		}
	}
	return d
}

// begin returns the time at the left of the drawing.
func (d *slotDrawing) begin() time.Time { return d.at.Add(-d.s.length) }

// end returns the time at which an attempt ended, or the time at the right end of the drawing if the attempt is still running.
func (d *slotDrawing) end(r admin.Run) time.Time {
	if r.FinishedAt.IsZero() {
		return d.at
	}
	return r.FinishedAt
}

// group makes bars of the attempts. It divides the time span into cells of equal length. If consecutive attempts of a row are shorter than
// a cell and begin in the same cell, they become one bar. Attempts that overlap in a row also become one bar.
func (d *slotDrawing) group(cells int) {
	d.bars = nil
	cell := d.s.length / time.Duration(cells)
	for row, runs := range d.rows {
		var last *slotBar
		short, place := false, int64(0) // whether the first attempt of the last bar is short, and the number of the cell where it begins
		for _, r := range runs {
			isShort := d.end(r).Sub(r.StartedAt) < cell
			at := int64(r.StartedAt.Sub(d.begin()) / cell)
			if last == nil || !last.To.After(r.StartedAt) && !(short && isShort && at == place) {
				last = &slotBar{Slot: row + 1, From: r.StartedAt, ID: r.TaskID, states: map[jobs.State]int{}}
				d.bars = append(d.bars, last)
				short, place = isShort, at
			}
			last.N++
			last.states[r.State]++
			if end := d.end(r); last.N == 1 || end.After(last.To) {
				last.To = end
			}
		}
	}
}

const slotHeight = 16 // in pixels

// draw draws the bars.
func (d *slotDrawing) draw(p page, names map[int64]jobs.Task) {
	total := map[jobs.State]int{}
	for _, r := range d.worker.Runs {
		total[r.State]++
	}
	d.Summary = humanize.Plural(len(d.worker.Runs), "run")
	if len(total) > 0 {
		d.Summary += ": " + stateCounts(total)
	}
	// The drawing knows nothing of the time before its worker started, and after it ended.
	known := slices.MaxFunc([]time.Time{d.from, d.worker.StartedAt}, time.Time.Compare)
	until := d.worker.EndedAt
	if until.IsZero() {
		until = d.at
	}
	bottom := plotTop + len(d.rows)*slotHeight
	d.Plot = plot{
		Class:      "slots",
		Label:      d.Summary,
		Height:     bottom + 20,
		ScaleWidth: 28,
		Axis:       bottom,
		Ticks:      timeMarks(d.begin().In(p.Now.Location()), d.s.length, d.s.ticks),
		Off: []rect{
			{"off", 0, plotTop, d.x(known), float64(bottom - plotTop)},
			{"off", d.x(until), plotTop, 100 - d.x(until), float64(bottom - plotTop)},
		},
	}
	for row := range d.rows {
		y := plotTop + (row+1)*slotHeight
		d.Plot.Lines = append(d.Plot.Lines, y)
		d.Plot.Scale = append(d.Plot.Scale, mark{Y: y - 8, Text: strconv.Itoa(row + 1)})
	}
	for _, b := range d.bars {
		b.describe(p, d.worker.Name, names)
		d.Plot.Bars = append(d.Plot.Bars, bar{b.Link, b.text(), []rect{d.rect(b)}})
	}
}

// x returns the place of a time, in percent of the width.
func (d *slotDrawing) x(t time.Time) float64 {
	return min(max(float64(t.Sub(d.begin()))*100/float64(d.s.length), 0), 100)
}

// rect draws a bar. A bar of several attempts has the colour of a failed one if
// there is one.
func (d *slotDrawing) rect(b *slotBar) rect {
	class := string(b.state())
	if b.N > 1 {
		class += " some"
	}
	x, y := d.x(b.From), float64(plotTop+(b.Slot-1)*slotHeight+2)
	width := max(d.x(b.To)-x, 0.25)
	return rect{class, min(x, 100-width), y, width, slotHeight - 3}
}

// state returns the state of an attempt. For several attempts it returns the
// first of these states that one of them has.
func (b *slotBar) state() jobs.State {
	for _, s := range []jobs.State{jobs.Failed, jobs.Running, jobs.Completed, jobs.Cancelled} {
		if b.states[s] > 0 {
			return s
		}
	}
	return jobs.Snoozed
}

// describe sets the texts and the link of a bar.
func (b *slotBar) describe(p page, worker string, names map[int64]jobs.Task) {
	b.From, b.To = b.From.In(p.Now.Location()), b.To.In(p.Now.Location())
	b.Link, b.Name, b.Result = p.Base+"/tasks/"+strconv.FormatInt(b.ID, 10), strconv.FormatInt(b.ID, 10), string(b.state())
	if b.N == 1 {
		name := "deleted"
		if t, ok := names[b.ID]; ok {
			name = p.ShortJob(t)
		}
		b.Name += " " + name
		return
	}
	const format = "2006-01-02T15:04:05.999Z"
	b.Link = p.Find(search.KeyWorker, worker, search.KeySince, b.From.UTC().Format(format),
		search.KeyUntil, b.To.Add(time.Millisecond).UTC().Format(format))
	b.Name = fmt.Sprintf("%d runs", b.N)
	b.Result = stateCounts(b.states)
}

// Took returns the duration of an attempt, or the length of the period of several attempts.
func (b *slotBar) Took() string { return humanize.Took(b.To.Sub(b.From)) }

func (b *slotBar) text() string {
	name := b.Name
	if b.N == 1 {
		name = "task " + name
	}
	return fmt.Sprintf("%s: %s, slot %d, %s–%s, %s", name, b.Result, b.Slot,
		b.From.Format(time.TimeOnly), b.To.Format("15:04:05 MST"), b.Took())
}

// Table returns the bars, the latest first.
func (d *slotDrawing) Table() []*slotBar {
	return slices.SortedStableFunc(slices.Values(d.bars), func(a, b *slotBar) int {
		return cmp.Or(b.From.Compare(a.From), cmp.Compare(a.Slot, b.Slot))
	})
}
