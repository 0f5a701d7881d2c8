package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
)

// The charts are SVG that the server draws. The style sheet sets their colours. Each bar has a title with its numbers,
// and a table shows the same numbers for screen readers.

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
	Range     string
	Ranges    []tab
	Bars      template.HTML
	Scale     template.HTML // labels of the two vertical axes
	Zone      string        // time zone of the axis
	Summary   string
	Wait, Run percentiles
	Sample    string     // number of tasks from which the percentiles were computed; empty if there are none
	Steps     []chartRow // bars with at least one ended task, the latest first
	Completed int
	Failed    int
	Cancelled int
	Per       string // text that says how long the period of a bar is, such as "per minute"
}

// chartRow is a row of the table below the chart.
type chartRow struct {
	admin.TimeBucket
	Failed     int
	FailedLink string // URL of the list of the tasks that failed in the period of this row
	Link       string // URL of the list of all tasks that ended in the period of this row
}

// percentiles contains drawings of the 50th and the 95th percentile over time, and their values for the whole time range.
type percentiles struct {
	P50, P95           template.HTML
	WholeP50, WholeP95 string
}

func newChart(p page, r chartRange, steps []admin.TimeBucket) *chart {
	c := &chart{Range: r.Name, Per: "in " + timetext.WriteDuration(r.length), Zone: p.zoneName(p.Now)}
	if r.length == time.Minute {
		c.Per = "per minute"
	}
	for _, other := range chartRanges {
		c.Ranges = append(c.Ranges, tab{Name: other.Name, Link: p.Base + "/?range=" + other.Name, Selected: other.Name == r.Name})
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; s.Ended[jobs.Completed]+s.Ended[jobs.Failed]+s.Ended[jobs.Cancelled] > 0 {
			c.Steps = append(c.Steps, chartRow{s, s.Ended[jobs.Failed], p.endedIn(s.At, r.length, string(jobs.Failed)),
				p.endedIn(s.At, r.length, "finished")})
		}
	}
	whole := admin.Whole(steps)
	c.Completed, c.Failed, c.Cancelled = whole.Ended[jobs.Completed], whole.Ended[jobs.Failed], whole.Ended[jobs.Cancelled]
	c.Summary = fmt.Sprintf("%s completed, %s failed, %s cancelled in the last %s", p.Count(c.Completed), p.Count(c.Failed),
		p.Count(c.Cancelled), r.Name)
	d := newDrawing(p, r, steps)
	c.Bars, c.Scale = d.bars(c.Summary), d.scale()
	if whole.Sampled > 0 {
		c.Sample = fmt.Sprintf("n = %s", p.Count(whole.Sampled))
		if ended := c.Completed + c.Failed + c.Cancelled; ended > whole.Sampled {
			c.Sample = fmt.Sprintf("n = %s of %s", p.Count(whole.Sampled), p.Count(ended))
		}
	}
	c.setPercentiles(whole, steps)
	return c
}

func (c *chart) setPercentiles(whole admin.TimeBucket, steps []admin.TimeBucket) {
	var w50, w95, r50, r95 []time.Duration
	for _, s := range steps {
		w50, w95, r50, r95 = append(w50, s.WaitP50), append(w95, s.WaitP95), append(r50, s.RunP50), append(r95, s.RunP95)
	}
	c.Wait = percentiles{durations(w50), durations(w95), humanize.Took(whole.WaitP50), humanize.Took(whole.WaitP95)}
	c.Run = percentiles{durations(r50), durations(r95), humanize.Took(whole.RunP50), humanize.Took(whole.RunP95)}
}

// endedIn returns the URL of the list of the tasks that ended in the given state during a period. The period begins at the parameter "at".
func (p page) endedIn(at time.Time, length time.Duration, state string) string {
	const format = "2006-01-02T15:04:05.999Z"
	return p.Find(search.KeyState, state, search.KeySince, at.UTC().Format(format),
		search.KeyUntil, at.Add(length).UTC().Format(format))
}

// durations draws durations as small bars.
func durations(list []time.Duration) template.HTML {
	values := make([]float64, len(list))
	for i, d := range list {
		values[i] = d.Seconds()
	}
	return spark(values, "")
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

// lastHour draws the tasks of a queue that ended in the last hour, in steps of three minutes.
func lastHour(ended []admin.HistoryPoint, queue string, now time.Time) template.HTML {
	const steps, length = 20, 3 * time.Minute
	since := now.Truncate(time.Minute).Add(time.Minute - steps*length)
	values := make([]float64, steps)
	for _, e := range ended {
		if i := int(e.At.Sub(since) / length); e.Queue == queue && !e.At.Before(since) && i < steps {
			values[i] += float64(e.N)
		}
	}
	return spark(values, "hour")
}
