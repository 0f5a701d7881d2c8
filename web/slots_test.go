package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// drawingOf draws the runs in the list. A run has the form "from to state" with
// seconds before noon; "-" stands for a missing end.
func drawingOf(t *testing.T, slots, rows, cells int, runs ...string) *slotDrawing {
	t.Helper()
	w := db.WorkerRuns{Name: "w", Slots: slots, StartedAt: noon.Add(-time.Hour)}
	for i, text := range runs {
		var from float64
		var to, state string
		if _, err := fmt.Sscan(text, &from, &to, &state); err != nil {
			t.Fatal(err)
		}
		r := db.Run{TaskID: int64(i + 1), State: jobs.State(state), StartedAt: noon.Add(-time.Duration(from * float64(time.Second)))}
		if to != "-" {
			d, err := time.ParseDuration(to + "s")
			if err != nil {
				t.Fatal(err)
			}
			r.FinishedAt = noon.Add(-d)
		}
		w.Runs = append(w.Runs, r)
	}
	d := newSlotDrawing(w, rows, workerRuns{at: noon, from: noon.Add(-10 * time.Minute)}, spans[0])
	d.group(cells)
	return d
}

// shape returns the bars as text: slot, begin and end in seconds before noon,
// number of runs.
func (d *slotDrawing) shape() string {
	var parts []string
	for _, b := range d.bars {
		parts = append(parts, fmt.Sprintf("%d:%v-%v×%d", b.Slot, noon.Sub(b.From).Seconds(), noon.Sub(b.To).Seconds(), len(b.runs)))
	}
	return strings.Join(parts, " ")
}

func TestRunsFillSlotsOfWorker(t *testing.T) {
	for name, c := range map[string]struct {
		slots, rows, cells int
		runs               []string
		want               string
		hidden             int
	}{
		"one after the other": {2, 2, 240, []string{"500 400 completed", "400 300 failed", "300 - running"},
			"1:500-400×1 1:400-300×1 1:300-0×1", 0},
		"two at once": {2, 2, 240, []string{"500 300 completed", "400 200 completed", "300 100 completed", "200 - running"},
			"1:500-300×1 1:300-100×1 2:400-200×1 2:200-0×1", 0},
		"a batch shares a slot": {1, 1, 240, []string{"500 400 completed", "500 400 failed", "500 400 completed"}, "1:500-400×3", 0},
		"short runs become one bar": {1, 1, 10, []string{"590 589 completed", "580 579 completed", "570 500 completed", "498 497 failed",
			"490 489 completed", "300 299 completed"}, "1:590-579×2 1:570-500×1 1:498-489×2 1:300-299×1", 0},
		"slots that are not drawn": {3, 1, 240, []string{"500 100 completed", "500 100 completed", "400 200 completed"}, "1:500-100×1", 2},
	} {
		d := drawingOf(t, c.slots, c.rows, c.cells, c.runs...)
		testkit.Equal(t, name, d.shape(), c.want)
		testkit.Equal(t, name+", hidden", d.Hidden, c.hidden)
	}
}

func TestBarsAreDrawnWithTheirTexts(t *testing.T) {
	d := drawingOf(t, 2, 2, 240, "300 240 completed", "240 239 failed", "239 238.5 completed", "60 - running")
	p := page{Now: noon, Base: "/x"}
	first := jobs.Task{ID: 1}
	first.Job, first.Label = command.Job, "<night>"
	d.draw(p, map[int64]jobs.Task{1: first})
	testkit.Equal(t, "summary", d.Summary, "4 runs: 1 running, 2 completed, 1 failed")
	var drawing strings.Builder
	testkit.NoError(t, templates().ExecuteTemplate(&drawing, "plot", d.Plot))
	testkit.Contains(t, drawing.String(),
		`<a href="/x/tasks/1" tabindex="-1"><title>task 1 &lt;night&gt;: completed, slot 1, 11:55:00–11:56:00 UTC, 1m`,
		`2 runs: 1 completed, 1 failed, slot 1, 11:56:00–11:56:01 UTC, 1.5s`, `class="failed some"`,
		`x="50.00%" y="18.0" width="10.00%"`, `task 4 deleted: running`, `>11:52</text>`,
		`/x/tasks?q=worker%3Aw%20since%3A2026-01-31T11%3A56%3A00Z%20until%3A2026-01-31T11%3A56%3A01.501Z`)
	table := d.Table()
	testkit.Equal(t, "rows of the table", len(table), 3)
	testkit.Equal(t, "first row", table[0].Name, "4 deleted")
}

func TestPageOfWorkersHasAtMostMaxBars(t *testing.T) {
	runs := workerRuns{at: noon, from: noon.Add(-10 * time.Minute)}
	v := &workersPage{page: page{Now: noon}}
	for n := range 5 {
		w := db.WorkerRuns{Name: fmt.Sprint("w", n), Slots: 40, StartedAt: noon.Add(-time.Hour)}
		for i := range 2000 {
			at := noon.Add(-time.Duration(2000-i) * 300 * time.Millisecond)
			end := at.Add(290 * time.Millisecond)
			for range 3 {
				w.Runs = append(w.Runs, db.Run{TaskID: 1, State: jobs.Completed, StartedAt: at, FinishedAt: end})
			}
		}
		v.Workers = append(v.Workers, workerStrip{Name: w.Name, worker: w})
	}
	bars, attempts := 0, 0
	drawings := v.place(runs, spans[0])
	for _, d := range drawings {
		bars += len(d.bars)
		for _, b := range d.bars {
			attempts += len(b.runs)
		}
	}
	testkit.Equal(t, "workers that are not shown", v.More, 2)
	if bars > maxBars || len(drawings) != 3 || attempts != 18_000 {
		t.Errorf("got %d bars of %d runs for %d workers, want at most %d bars of 18000 runs for 3 workers", bars, attempts,
			len(drawings), maxBars)
	}
}
