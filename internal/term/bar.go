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
//	enqueueing tasks.jsonl  ██████████████░░░░░░  68%  681,204/1,000,000  212k/s
//
// It appears when the work has taken a second.
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
	barCells    = 20
)

// NewBar returns the bar of work that begins now. The name says what is worked on, such as a file.
func NewBar(p *Printer, name string) Bar { return Bar{p: p, name: name, began: p.Now()} }

// Start begins a phase of total steps.
func (b *Bar) Start(verb string, total int) {
	b.verb, b.Total, b.since = verb, total, b.p.Now()
}

// Step shows that n steps of the phase are done. Most calls return at once.
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

// line returns the line after n steps. It fits the terminal.
func (b *Bar) line(n int, took time.Duration) string {
	width := b.p.Stderr.Width - 1 // a text in the last column would make some terminals scroll
	head := "  " + b.verb + " " + humanize.Safe(b.name)
	tail := "  " + humanize.Count(int64(n)) + "  " + rate(float64(n)/took.Seconds())
	if b.Total > 0 {
		tail = fmt.Sprintf(" %3d%%  %s/%s  %s", n*100/b.Total, humanize.Count(int64(n)), humanize.Count(int64(b.Total)),
			rate(float64(n)/took.Seconds()))
		if long := min(barCells, width-Cells(head)-Cells(tail)-2); long >= 5 {
			full := min((n*long+b.Total/2)/b.Total, long)
			return head + "  " + strings.Repeat("█", full) + strings.Repeat("░", long-full) + tail
		}
	}
	return Cut(head, max(width-Cells(tail), 0)) + Cut(tail, width)
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
	}
}

// Finish replaces the line by the result, if the work took long enough for a bar.
func (b *Bar) Finish(result string) {
	b.Clear()
	if whole := b.p.Now().Sub(b.began); b.p.Stderr.TTY && !b.p.JSON && whole >= barAfter {
		b.p.Say("  %s in %s", result, humanize.Took(whole))
	}
}

// rate returns a number per second as text: 850/s, 212k/s, 1.2M/s.
func rate(n float64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%.0f/s", n)
	case n < 1e6:
		return fmt.Sprintf("%.0fk/s", n/1000)
	}
	return fmt.Sprintf("%.1fM/s", n/1e6)
}
