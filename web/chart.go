package web

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/search"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
)

// chartRange is a time range of the chart.
type chartRange struct {
	Name   string
	length time.Duration // period that a bar covers
	bars   int
	ticks  time.Duration // time between two marks of the time axis
	fresh  time.Duration // how long the data may be reused
}

var chartRanges = []chartRange{
	{"1h", time.Minute, 60, 10 * time.Minute, 2 * time.Second},
	{"24h", 15 * time.Minute, 96, 4 * time.Hour, 30 * time.Second},
	{"7d", 2 * time.Hour, 84, 24 * time.Hour, 2 * time.Minute},
}

// chart is the data of the chart of the tasks that ended in a time range.
type chart struct {
	Ranges    []tab
	Plot      plot
	Zone      string // time zone of the axis
	Summary   string
	Whole     admin.Trend
	Steps     []chartRow // bars with at least one ended task, the latest first
	Cancelled int
	Per       string // text that says how long the period of a bar is, such as "per minute"
}

// chartRow is a row of the table below the chart.
type chartRow struct {
	admin.TrendStep
	Failed     int
	FailedLink string // URL of the list of the tasks that failed in the period of this row
	Link       string // URL of the list of all tasks that ended in the period of this row
}

func newChart(p page, r chartRange, whole admin.Trend) *chart {
	c := &chart{Per: "in " + timetext.WriteDuration(r.length), Zone: p.zoneName(p.Now)}
	if r.length == time.Minute {
		c.Per = "per minute"
	}
	for _, other := range chartRanges {
		c.Ranges = append(c.Ranges, tab{Name: other.Name, Link: p.Base + "/?range=" + other.Name, Selected: other.Name == r.Name})
	}
	for _, s := range slices.Backward(whole.Steps) {
		if s.Ended[jobs.Completed]+s.Ended[jobs.Failed]+s.Ended[jobs.Cancelled] > 0 {
			c.Steps = append(c.Steps, chartRow{s, s.Ended[jobs.Failed], p.endedIn(s.At, r.length, string(jobs.Failed)),
				p.endedIn(s.At, r.length, "finished")})
		}
	}
	c.Whole = whole
	completed, failed := whole.Ended[jobs.Completed], whole.Ended[jobs.Failed]
	c.Cancelled = whole.Ended[jobs.Cancelled]
	c.Summary = fmt.Sprintf("%s completed, %s failed, %s cancelled in the last %s", p.Count(completed), p.Count(failed),
		p.Count(c.Cancelled), r.Name)
	c.Plot = endedPlot(p, r, whole.Steps)
	c.Plot.Label = c.Summary
	return c
}

// The measures of the chart in pixels.
const (
	endedHeight  = 90
	failedTop    = plotTop + endedHeight + 14
	failedHeight = 46
)

// endedPlot draws how many tasks ended in each period. Completed and cancelled
// tasks share a plot. Failed tasks have a scale of their own, because they are
// usually few.
func endedPlot(p page, r chartRange, steps []admin.TrendStep) plot {
	ended, failed := 0, 0
	for _, s := range steps {
		ended = max(ended, s.Ended[jobs.Completed]+s.Ended[jobs.Cancelled])
		failed = max(failed, s.Ended[jobs.Failed])
	}
	ended, failed = roundUp(ended), roundUp(failed)
	const middle, zero, bottom = plotTop + endedHeight/2, plotTop + endedHeight, failedTop + failedHeight
	v := plot{
		Height:     bottom + 18,
		ScaleWidth: 46,
		Axis:       bottom,
		Lines:      []int{plotTop, middle, zero, failedTop, bottom},
		Scale: []mark{
			{Y: plotTop, Text: p.Count(ended)},
			{Y: middle, Text: p.Count(ended / 2)},
			{Y: zero, Text: "0"},
			{Y: failedTop, Text: p.Count(failed), Class: "failed"},
			{Y: bottom, Text: "0", Class: "failed"},
		},
		Ticks: timeMarks(steps[0].At.In(p.Now.Location()), r.length*time.Duration(len(steps)), r.ticks),
	}
	add := func(i int, state jobs.State, top, size, most int, below float64) float64 {
		n := steps[i].Ended[state]
		if n == 0 {
			return below
		}
		height := max(float64(n)/float64(most)*float64(size), 1)
		text := fmt.Sprintf("%s: %s %s", p.period(steps[i].At, r.length), p.Count(n), state)
		link := p.endedIn(steps[i].At, r.length, string(state))
		b := column(i, len(steps), string(state), link, text, float64(top), float64(size), below, height)
		if below > 0 {
			b.Rects = b.Rects[1:] // the column is the link of the bar below
		}
		v.Bars = append(v.Bars, b)
		return below + height
	}
	for i := range steps {
		below := add(i, jobs.Completed, plotTop, endedHeight, ended, 0)
		add(i, jobs.Cancelled, plotTop, endedHeight, ended, below)
	}
	for i := range steps {
		add(i, jobs.Failed, failedTop, failedHeight, failed, 0)
	}
	return v
}

// roundUp rounds up to a number of the series 2, 4, 10, 20, 40, 100 and so on.
// Half of each is a whole number, too.
func roundUp(n int) int {
	for power := 1; ; power *= 10 {
		for _, factor := range []int{2, 4, 10} {
			if n <= factor*power {
				return factor * power
			}
		}
	}
}

// period returns a period as text, with the day if it is an hour or longer.
func (p page) period(at time.Time, length time.Duration) string {
	from, to := at.In(p.Now.Location()), at.Add(length).In(p.Now.Location())
	format := "15:04"
	if length >= time.Hour {
		format = "Mon 15:04"
	}
	return from.Format(format) + "–" + to.Format("15:04 MST")
}

// endedIn returns the URL of the list of the tasks that ended in the given state during a period. The period begins at the parameter "at".
func (p page) endedIn(at time.Time, length time.Duration, state string) string {
	const format = "2006-01-02T15:04:05.999Z"
	return p.Find(search.KeyState, state, search.KeySince, at.UTC().Format(format),
		search.KeyUntil, at.Add(length).UTC().Format(format))
}

// spark draws values as small bars.
func spark(values []float64, class string) template.HTML {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark %s" viewBox="0 0 %d 20" preserveAspectRatio="none" aria-hidden="true">`, class, len(values)*3)
	for i, v := range values {
		if v > 0 {
			height := max(v/most*20, 1.5)
			fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="2" height="%.1f"/>`, i*3, 20-height, height)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// lastHour counts the tasks that ended in the last hour, by queue, in steps of
// three minutes.
func (h *handler) lastHour(ctx context.Context, now time.Time) ([]map[string]int, error) {
	const steps, length = 20, 3 * time.Minute
	since := now.Truncate(time.Minute).Add(time.Minute - steps*length)
	return admin.Store(h.r).ThroughputByQueue(ctx, since, length, steps)
}

// sparkOf draws the steps of one queue.
func sparkOf(ended []map[string]int, queue string) template.HTML {
	values := make([]float64, len(ended))
	for i, step := range ended {
		values[i] = float64(step[queue])
	}
	return spark(values, "hour")
}
