package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Bar is a line on a terminal with the progress of long work:
//
//	enqueueing tasks.jsonl  █████████░░░░  68%  681,204/1,000,000  212k/s  ETA 2s
//
// The bar appears when the work has taken a second.
type Bar struct {
	p     *Printer
	name  string
	began time.Time // start of the work

	verb  string
	Total int // steps in total; 0 if unknown
	since time.Time
	next  time.Time // time of the next drawing
	drawn int       // width of the drawn line, in cells
}

const (
	barAfter    = time.Second
	BarInterval = 100 * time.Millisecond
	logInterval = time.Minute
)

// NewBar returns the bar of work that begins now. The parameter name is the name of the object of the work, such as a file.
func NewBar(p *Printer, name string) Bar { return Bar{p: p, name: name, began: p.Now()} }

// Start begins a phase of the work. The parameter total is the number of its steps.
func (b *Bar) Start(verb string, total int) {
	b.verb, b.Total, b.since = verb, total, b.p.Now()
}

// Step shows that n steps of the phase are done. Most calls return immediately and draw nothing.
func (b *Bar) Step(n int) {
	if n%256 != 0 || !b.p.Stderr.TTY || b.p.JSON {
		return
	}
	now := b.p.Now()
	if now.Sub(b.began) < barAfter || now.Before(b.next) {
		return
	}
	b.next = now.Add(BarInterval)
	b.Draw(b.line(n, now.Sub(b.since)))
}

// line returns the line after n steps. The line is not wider than the terminal.
func (b *Bar) line(n int, took time.Duration) string {
	return b.text(Progress{Done: n, Total: b.Total, PerSecond: float64(n) / max(took.Seconds(), 1e-3)})
}

// text returns the line for a progress. It leaves the last column free, because some terminals scroll when they get text there.
func (b *Bar) text(w Progress) string {
	return w.Line("  "+strings.TrimSpace(b.verb+" "+humanize.Safe(b.name)), b.p.Stderr.Width-1)
}

// Show shows the progress of work that takes long. On a terminal it draws the bar. Elsewhere it prints one line per minute.
func (b *Bar) Show(w Progress) {
	now := b.p.Now()
	first, interval := barAfter, BarInterval
	if !b.p.Stderr.TTY {
		first, interval = logInterval, logInterval
	}
	if b.p.JSON || now.Sub(b.began) < first || now.Before(b.next) {
		return
	}
	b.next = now.Add(interval)
	if !b.p.Stderr.TTY {
		b.p.Say("%s", w.Text())
		return
	}
	b.p.Stderr.Resize()
	b.Draw(b.text(w))
}

func (b *Bar) Draw(line string) {
	b.p.Flush()
	io.WriteString(b.p.Stderr, "\r"+b.p.Stderr.Readable(line)+strings.Repeat(" ", max(b.drawn-Cells(line), 0)))
	b.drawn = Cells(line)
}

// Clear removes the line from the terminal.
func (b *Bar) Clear() {
	if b.drawn > 0 {
		b.Draw("")
		io.WriteString(b.p.Stderr, "\r")
		b.next = time.Time{}
	}
}

// Finish replaces the bar by the result if the work took long enough for a bar.
func (b *Bar) Finish(result string) {
	b.Clear()
	if whole := b.p.Now().Sub(b.began); b.p.Stderr.TTY && !b.p.JSON && whole >= barAfter {
		b.p.Say("  %s in %s", result, humanize.Took(whole))
	}
}

// rate returns a number per second as text: 3.6/h, 15/min, 1.5/s, 850/s, 212k/s, 1.2M/s.
func rate(n float64) string {
	switch {
	case n < 1.0/60:
		return fmt.Sprintf("%.1f/h", n*3600)
	case n < 1:
		return fmt.Sprintf("%.0f/min", n*60)
	case n < 10:
		return fmt.Sprintf("%.1f/s", n)
	case n < 1000:
		return fmt.Sprintf("%.0f/s", n)
	case n < 1e6:
		return fmt.Sprintf("%.0fk/s", n/1000)
	}
	return fmt.Sprintf("%.1fM/s", n/1e6)
}
