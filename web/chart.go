package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
)

// The charts are SVG that the server draws. The style sheet sets their colours. Each bar has a title with its numbers,
// and a table shows the same numbers for screen readers.

// chartRange is a time range of the chart.
type chartRange struct {
	Name   string
	length time.Duration // time range of a bar
	bars   int
	fresh  time.Duration // how long the data may be reused
}

var chartRanges = []chartRange{
	{"1h", time.Minute, 60, 2 * time.Second},
	{"24h", 15 * time.Minute, 96, 30 * time.Second},
	{"7d", 2 * time.Hour, 84, 2 * time.Minute},
}

// chart is the data of the chart of the tasks that ended in a time range.
type chart struct {
	Range      string
	Ranges     []tab
	Bars       template.HTML
	Most       int
	From       string
	Summary    string
	Wait, Run  percentiles
	Steps      []admin.TimeBucket // bars with at least one ended task, the latest first
	Completed  int
	Failed     int
	Cancelled  int
	Per        string // time range of a bar in words, for example "per minute"
	AnySamples bool
}

// percentiles contains drawings of the 50th and the 95th percentile over time, and the latest value of each.
type percentiles struct {
	P50, P95         template.HTML
	LastP50, LastP95 string
}

func newChart(p page, r chartRange, steps []admin.TimeBucket) *chart {
	c := &chart{Range: r.Name, From: r.Name + " ago", Per: "in " + timetext.WriteDuration(r.length)}
	if r.length == time.Minute {
		c.Per = "per minute"
	}
	for _, other := range chartRanges {
		c.Ranges = append(c.Ranges, tab{Name: other.Name, Link: p.Base + "/?range=" + other.Name, Selected: other.Name == r.Name})
	}
	var w50, w95, r50, r95 []time.Duration
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		n := 0
		for _, ended := range s.Ended {
			n += ended
		}
		c.Most = max(c.Most, n)
		c.Completed += s.Ended[jobs.Completed]
		c.Failed += s.Ended[jobs.Failed]
		c.Cancelled += s.Ended[jobs.Cancelled]
		if n > 0 {
			c.Steps = append(c.Steps, s)
		}
		if s.Sampled > 0 && !c.AnySamples {
			c.AnySamples = true
			c.Wait.LastP50, c.Wait.LastP95 = humanize.Took(s.WaitP50), humanize.Took(s.WaitP95)
			c.Run.LastP50, c.Run.LastP95 = humanize.Took(s.RunP50), humanize.Took(s.RunP95)
		}
	}
	for _, s := range steps {
		w50, w95, r50, r95 = append(w50, s.WaitP50), append(w95, s.WaitP95), append(r50, s.RunP50), append(r95, s.RunP95)
	}
	c.Summary = fmt.Sprintf("%s completed, %s failed, %s cancelled in the last %s", p.Count(c.Completed), p.Count(c.Failed),
		p.Count(c.Cancelled), r.Name)
	c.Bars = bars(steps, c.Most, c.Summary)
	c.Wait.P50, c.Wait.P95 = durations(w50), durations(w95)
	c.Run.P50, c.Run.P95 = durations(r50), durations(r95)
	return c
}

const chartHeight = 100

// bars draws a bar for each time bucket in steps. Failed tasks are at the bottom of the bar, where they are easy to see.
func bars(steps []admin.TimeBucket, most int, summary string) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`,
		len(steps)*10, chartHeight, template.HTMLEscapeString(summary))
	for i, s := range steps {
		at := s.At.Local().Format("15:04")
		if len(steps) > 0 && steps[len(steps)-1].At.Sub(steps[0].At) > 24*time.Hour {
			at = s.At.Local().Format("Mon 15:04")
		}
		y := float64(chartHeight)
		for _, state := range []jobs.State{jobs.Failed, jobs.Cancelled, jobs.Completed} {
			n := s.Ended[state]
			if n == 0 {
				continue
			}
			height := max(float64(n)/float64(most)*chartHeight, 3)
			y -= height
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%.1f" width="8" height="%.1f"><title>%s: %d %s</title></rect>`,
				state, i*10+1, max(y, 0), height, at, n, state)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
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
