package web

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
)

// span is a length of time that a page shows.
type span struct {
	Name   string
	length time.Duration
	ticks  time.Duration // between two marks of the time axis
	fresh  time.Duration // how long its data may be reused
	step   time.Duration // that a bar of the chart covers
	Step   string        // the same in words
}

var chartSpans = []span{
	{"1h", time.Hour, 10 * time.Minute, 2 * time.Second, time.Minute, "minute"},
	{"24h", 24 * time.Hour, 4 * time.Hour, 30 * time.Second, 15 * time.Minute, "15 minutes"},
	{"7d", 7 * 24 * time.Hour, 24 * time.Hour, 2 * time.Minute, 2 * time.Hour, "2 hours"},
}

// spanTabs returns links to a page with each of the spans.
func spanTabs(list []span, chosen span, link string) (tabs []tab) {
	for _, s := range list {
		tabs = append(tabs, tab{Name: s.Name, Link: link + s.Name, Selected: s == chosen})
	}
	return tabs
}

// chart is the data of the chart of the tasks that ended in a span.
type chart struct {
	page
	Span    span
	Spans   []tab
	Plot    plot
	Summary string
	Whole   trend
	Steps   []trendStep // those with at least one ended task, the latest first
}

func newChart(p page, s span, whole trend) *chart {
	c := &chart{page: p, Span: s, Spans: spanTabs(chartSpans, s, p.Base+"/?range="), Whole: whole}
	for _, step := range slices.Backward(whole.Steps) {
		if len(step.Ended) > 0 {
			c.Steps = append(c.Steps, step)
		}
	}

	c.Summary = fmt.Sprintf("%s completed, %s failed, %s cancelled in the last %s", p.Number(whole.Ended, "completed"),
		p.Number(whole.Ended, "failed"), p.Number(whole.Ended, "cancelled"), s.Name)
	c.Plot = c.draw()
	return c
}

// Link returns the URL of the list of the tasks that ended in a state during a
// step.
func (c *chart) Link(step trendStep, state string) string {
	return c.Find(search.KeyState, state, search.KeySince, searchTime(step.At), search.KeyUntil, searchTime(step.At.Add(c.Span.step)))
}

// searchTime returns a time as a search has it.
func searchTime(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.999Z") }

// The measures of the chart in pixels.
const (
	endedHeight  = 90
	failedTop    = plotTop + endedHeight + 14
	failedHeight = 46
)

// draw draws how many tasks ended in each step. Completed and cancelled tasks
// share a plot. Failed tasks have a scale of their own, because they are
// usually few.
func (c *chart) draw() plot {
	steps := c.Whole.Steps
	ended, failed := 0, 0
	for _, s := range steps {
		ended = max(ended, s.Ended[jobs.Completed]+s.Ended[jobs.Cancelled])
		failed = max(failed, s.Ended[jobs.Failed])
	}

	ended, failed = roundUp(ended), roundUp(failed)
	const middle, zero, bottom = plotTop + endedHeight/2, plotTop + endedHeight, failedTop + failedHeight
	v := plot{
		Label:      c.Summary,
		Height:     bottom + 18,
		ScaleWidth: 46,
		Axis:       bottom,
		Lines:      []int{plotTop, middle, zero, failedTop, bottom},
		Scale: []mark{
			{Y: plotTop, Text: c.Count(ended)},
			{Y: middle, Text: c.Count(ended / 2)},
			{Y: zero, Text: "0"},
			{Y: failedTop, Text: c.Count(failed), Class: "failed"},
			{Y: bottom, Text: "0", Class: "failed"},
		},
		Ticks: timeMarks(steps[0].At.In(c.Now.Location()), c.Span.length, c.Span.ticks),
	}
	add := func(i int, state jobs.State, top, size, scale int, below float64) float64 {
		n := steps[i].Ended[state]
		if n == 0 {
			return below
		}

		height := max(float64(n)/float64(scale)*float64(size), 1)
		text := fmt.Sprintf("%s: %s %s", c.period(steps[i].At), c.Count(n), state)
		b := column(i, len(steps), string(state), c.Link(steps[i], string(state)), text, float64(top), float64(size), below, height)
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

// period returns a step as text, with the day if it is an hour or longer.
func (c *chart) period(at time.Time) string {
	format := "15:04"
	if c.Span.step >= time.Hour {
		format = "Mon 15:04"
	}
	at = at.In(c.Now.Location())
	return at.Format(format) + "–" + at.Add(c.Span.step).Format("15:04 MST")
}

// spark draws values as small bars.
func spark(values []float64, class string) template.HTML {
	largest := 0.0
	for _, v := range values {
		largest = max(largest, v)
	}

	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark %s" viewBox="0 0 %d 20" preserveAspectRatio="none" aria-hidden="true">`, class, len(values)*3)
	for i, v := range values {
		if v > 0 {
			height := max(v/largest*20, 1.5)
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
	return db.Of(h.r).ThroughputByQueue(ctx, since, length, steps)
}

// sparkOf draws the steps of one queue.
func sparkOf(ended []map[string]int, queue string) template.HTML {
	values := make([]float64, len(ended))
	for i, step := range ended {
		values[i] = float64(step[queue])
	}
	return spark(values, "hour")
}
