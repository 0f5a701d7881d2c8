package term

import (
	"io"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Bar is a line on a terminal with the progress of long work:
//
//	enqueueing tasks.jsonl  █████████░░░░  68%  681,204/1,000,000  212,000/s  ETA 2s
//
// The bar appears when the work has taken a second.
type Bar struct {
	p     *Printer
	name  string
	began time.Time // time at which the work began

	verb  string
	Total int // total number of steps; 0 if unknown
	since time.Time
	next  time.Time // do not draw again before this time
	drawn int       // width of the line on the screen, in cells
}

const (
	barAfter    = time.Second
	BarInterval = 100 * time.Millisecond
	logInterval = time.Minute
)

// NewBar returns a bar for work that begins now. The parameter "name" says what the work is about, for example the name of a file.
func NewBar(p *Printer, name string) Bar { return Bar{p: p, name: name, began: p.Now()} }

// Start begins a phase of the work. The parameter "verb" says what the phase does, and total is its number of steps.
func (b *Bar) Start(verb string, total int) {
	b.verb, b.Total, b.since = verb, total, b.p.Now()
}

// Step tells the bar of a terminal that n steps of the phase are done. Most calls
// only return.
func (b *Bar) Step(n int) {
	if n%256 == 0 && b.p.Stderr.TTY {
		took := b.p.Now().Sub(b.since)
		b.Show(Progress{Done: n, Total: b.Total, PerSecond: float64(n) / max(took.Seconds(), 1e-3)})
	}
}

// Show shows the progress if the work takes long. On a terminal it draws the bar. Elsewhere it prints one line per minute.
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
	b.Draw(b.line(w))
}

// line returns the line to draw. It leaves the last column empty, because some
// terminals scroll after a character in that column.
func (b *Bar) line(w Progress) string {
	return w.Line("  "+strings.TrimSpace(b.verb+" "+humanize.Safe(b.name)), b.p.Stderr.Width-1)
}

func (b *Bar) Draw(line string) {
	b.p.Flush()
	io.WriteString(b.p.Stderr, "\r"+b.p.Stderr.Readable(line)+strings.Repeat(" ", max(b.drawn-Cells(line), 0)))
	b.drawn = Cells(line)
}

// Clear removes the bar from the terminal.
func (b *Bar) Clear() {
	if b.drawn > 0 {
		b.Draw("")
		io.WriteString(b.p.Stderr, "\r")
		b.next = time.Time{}
	}
}

// Finish replaces the bar by a line with the result. If the work was too short for a bar, it prints nothing.
func (b *Bar) Finish(result string) {
	b.Clear()
	if whole := b.p.Now().Sub(b.began); b.p.Stderr.TTY && whole >= barAfter {
		b.p.Tell("  %s in %s", result, humanize.Took(whole))
	}
}
