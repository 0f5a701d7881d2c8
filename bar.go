package main

import (
	"example.com/runner/internal/humanize"
	"fmt"
	"io"
	"strings"
	"time"
)

// bar is a line on a terminal that says how far a long batch is:
//
//	enqueueing tasks.jsonl  ██████████████░░░░░░  68%  681,204/1,000,000  212k/s
//
// It appears when the whole has taken a second.
type bar struct {
	p     *printer
	name  string
	began time.Time // the whole

	verb  string
	total int // 0: nobody knows
	since time.Time
	next  time.Time // when it is drawn again
	drawn int       // cells that are on the line now
}

const (
	barAfter = time.Second
	barEvery = 100 * time.Millisecond
	barCells = 20
)

// start begins a stretch of so many steps.
func (b *bar) start(verb string, total int) {
	b.verb, b.total, b.since = verb, total, b.p.now()
}

// step says that n steps are done. It is cheap.
func (b *bar) step(n int) {
	if n%256 != 0 || !b.p.talk.tty || b.p.json {
		return
	}
	now := b.p.now()
	if now.Sub(b.began) < barAfter || now.Before(b.next) {
		return
	}
	b.next = now.Add(barEvery)
	b.draw(b.line(n, now.Sub(b.since)))
}

// line is what is drawn after n steps, which took so long. It fits the terminal.
func (b *bar) line(n int, took time.Duration) string {
	width := b.p.talk.width - 1 // the last column would make some terminals scroll
	head := "  " + b.verb + " " + humanize.Safe(b.name)
	tail := "  " + humanize.Count(int64(n)) + "  " + rate(float64(n)/took.Seconds())
	if b.total > 0 {
		tail = fmt.Sprintf(" %3d%%  %s/%s  %s", n*100/b.total, humanize.Count(int64(n)), humanize.Count(int64(b.total)),
			rate(float64(n)/took.Seconds()))
		if long := min(barCells, width-cells(head)-cells(tail)-2); long >= 5 {
			full := min((n*long+b.total/2)/b.total, long)
			return head + "  " + strings.Repeat("█", full) + strings.Repeat("░", long-full) + tail
		}
	}
	return cut(head, max(width-cells(tail), 0)) + cut(tail, width)
}

func (b *bar) draw(line string) {
	b.p.flush()
	io.WriteString(b.p.talk, "\r"+line+strings.Repeat(" ", max(b.drawn-cells(line), 0)))
	b.drawn = cells(line)
}

// clear takes the line away.
func (b *bar) clear() {
	if b.drawn > 0 {
		b.draw("")
		io.WriteString(b.p.talk, "\r")
	}
}

// finish puts the result in the place of the line, if it took long enough for one.
func (b *bar) finish(result string) {
	b.clear()
	if whole := b.p.now().Sub(b.began); b.p.talk.tty && !b.p.json && whole >= barAfter {
		b.p.say("  %s in %s", result, humanize.Took(whole))
	}
}

// rate is how many per second, for people: 850/s, 212k/s, 1.2M/s.
func rate(n float64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%.0f/s", n)
	case n < 1e6:
		return fmt.Sprintf("%.0fk/s", n/1000)
	}
	return fmt.Sprintf("%.1fM/s", n/1e6)
}
