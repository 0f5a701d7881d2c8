package web

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// These are the measures of a drawing in pixels, from the top. The width is relative, so that the drawing fits every window and its text is
// not distorted.
const (
	endedTop      = 16 // the space above the plot shows the numbers of the bar that has the focus
	endedHeight   = 90
	failedTop     = endedTop + endedHeight + 14
	failedHeight  = 46
	drawingHeight = failedTop + failedHeight + 18 // the space below the plot shows the times
	scaleWidth    = 46
)

// drawing draws bars for the numbers of tasks that ended in each period. Completed and cancelled tasks share a plot. Failed tasks have a
// plot with a scale of its own, because they are usually few.
type drawing struct {
	page          page
	r             chartRange
	steps         []admin.TimeBucket
	ended, failed int // values at the top of the two plots
	last          int // index of the latest bar
	drawn         int
	b             strings.Builder
}

func newDrawing(p page, r chartRange, steps []admin.TimeBucket) *drawing {
	d := &drawing{page: p, r: r, steps: steps}
	for _, s := range steps {
		d.ended = max(d.ended, s.Ended[jobs.Completed]+s.Ended[jobs.Cancelled])
		d.failed = max(d.failed, s.Ended[jobs.Failed])
		for _, n := range s.Ended {
			if n > 0 {
				d.last++
			}
		}
	}
	d.ended, d.failed = roundUp(d.ended), roundUp(d.failed)
	return d
}

// roundUp returns n, rounded up to a number of the series 2, 4, 10, 20, 40, 100 and so on. All of these numbers are even, so the label at
// half the height of an axis is a whole number.
func roundUp(n int) int {
	for power := 1; ; power *= 10 {
		for _, factor := range []int{2, 4, 10} {
			if n <= factor*power {
				return factor * power
			}
		}
	}
}

// scale draws the labels of the two vertical axes.
func (d *drawing) scale() template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="scale" width="%d" height="%d" aria-hidden="true">`, scaleWidth, drawingHeight)
	label := func(y, n int, class string) {
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d" text-anchor="end">%s</text>`, class, scaleWidth-6, y+4, humanize.Count(int64(n)))
	}
	label(endedTop, d.ended, "")
	label(endedTop+endedHeight/2, d.ended/2, "")
	label(endedTop+endedHeight, 0, "")
	label(failedTop, d.failed, "failed")
	label(failedTop+failedHeight, 0, "failed")
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// bars draws the plots. A bar is a link to the tasks that it counts. The tab key reaches the latest bar only, and the arrow keys move from
// there to the other bars.
func (d *drawing) bars(summary string) template.HTML {
	fmt.Fprintf(&d.b, `<svg class="bars" width="100%%" height="%d" role="group" aria-label="%s">`, drawingHeight,
		template.HTMLEscapeString(summary))
	for _, y := range []int{endedTop, endedTop + endedHeight/2, endedTop + endedHeight, failedTop, failedTop + failedHeight} {
		fmt.Fprintf(&d.b, `<line x1="0" x2="100%%" y1="%d" y2="%[1]d"/>`, y)
	}
	d.times()
	for i, s := range d.steps {
		below := d.bar(i, jobs.Completed, s.Ended[jobs.Completed], 0)
		d.bar(i, jobs.Cancelled, s.Ended[jobs.Cancelled], below)
	}
	for i, s := range d.steps {
		d.bar(i, jobs.Failed, s.Ended[jobs.Failed], 0)
	}
	d.b.WriteString(`</svg>`)
	return template.HTML(d.b.String())
}

// bar draws one part of the bar of period i: the part for the n tasks that ended in a state. The earlier parts of this bar have the height
// "below". The new part stands on them. The result is the height of all parts together. Each part is at least a pixel high, and is a link.
// For completed and failed tasks, the link fills the whole height of the plot, so that it is easier to hit with a pointer.
func (d *drawing) bar(i int, state jobs.State, n int, below float64) float64 {
	if n == 0 {
		return below
	}
	top, size, most := float64(endedTop), float64(endedHeight), d.ended
	if state == jobs.Failed {
		top, size, most = failedTop, failedHeight, d.failed
	}
	height := max(float64(n)/float64(most)*size, 1)
	y := top + size - below - height
	at, width := float64(i)*100/float64(len(d.steps)), 100/float64(len(d.steps))
	text := fmt.Sprintf("%s: %s %s", d.period(d.steps[i].At), humanize.Count(int64(n)), state)
	d.drawn++
	stop := ` tabindex="-1"`
	if d.drawn == d.last {
		stop = ""
	}
	link := template.HTMLEscapeString(d.page.endedIn(d.steps[i].At, d.r.length, string(state)))
	fmt.Fprintf(&d.b, `<a href="%s"%s><title>%s</title>`, link, stop, text)
	if state != jobs.Cancelled {
		fmt.Fprintf(&d.b, `<rect class="hit" x="%.2f%%" y="%.0f" width="%.2f%%" height="%.0f"/>`, at, top, width, size)
	}
	fmt.Fprintf(&d.b, `<rect class="%s" x="%.2f%%" y="%.1f" width="%.2f%%" height="%.1f"/>`, state, at+width*0.1, y, width*0.8, height)
	fmt.Fprintf(&d.b, `<text class="tip" x="100%%" y="10" text-anchor="end" aria-hidden="true">%s</text></a>`, text)
	return below + height
}

// period returns the period of a bar as text, with the day of the week if a bar is an hour or longer.
func (d *drawing) period(at time.Time) string {
	from, to := at.In(d.page.Now.Location()), at.Add(d.r.length).In(d.page.Now.Location())
	format := "15:04"
	if d.r.length >= time.Hour {
		format = "Mon 15:04"
	}
	return from.Format(format) + "–" + to.Format("15:04 ") + d.page.zoneName(to)
}

// times draws the marks of the time axis.
func (d *drawing) times() {
	d.page.timeTicks(&d.b, d.steps[0].At, d.r.length*time.Duration(len(d.steps)), d.r.ticks, failedTop+failedHeight)
}

// timeTicks draws the marks of a time axis below y, at round times of the zone of the page.
func (p page) timeTicks(b *strings.Builder, first time.Time, length, step time.Duration, y int) {
	first = first.In(p.Now.Location())
	for n, at := 0, time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, first.Location()); ; at = at.Add(step) {
		x := float64(at.Sub(first)) / float64(length) * 100
		if x >= 98 {
			return
		}
		if x < 2 { // leave out a label that the edge would cut off
			continue
		}
		format, class := "15:04", ""
		if step >= 24*time.Hour {
			format = "Mon 2"
		}
		if n++; n%2 == 0 {
			class = ` class="c5"`
		}
		x = math.Round(x*100) / 100
		fmt.Fprintf(b, `<line class="tick" x1="%v%%" x2="%[1]v%%" y1="%d" y2="%d"/>`, x, y, y+4)
		fmt.Fprintf(b, `<text%s x="%v%%" y="%d" text-anchor="middle">%s</text>`, class, x, y+16, at.Format(format))
	}
}
