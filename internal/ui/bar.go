package ui

import (
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Bar is a line on a terminal with the progress of long work:
//
//	enqueueing tasks.jsonl  68%  681,204/1,000,000  17 failed  ETA 2s  212,000/s
//
// It appears when the work has taken a second. (The bars of libraries wrap on a
// narrow terminal, and compile regular expressions when any command starts.)
type Bar struct {
	p     *Printer
	verb  string
	name  string    // what the work is about, such as a file
	Total int       // number of all steps; 0 if unknown
	began time.Time // time at which the work began
	since time.Time // time of the first Show
	first int       // number of steps that were done at this time; they don't count for the rate
	next  time.Time // do not draw again before this time
	drawn bool
}

const (
	barAfter    = time.Second
	barInterval = 100 * time.Millisecond
	longestName = 30               // in cells
	longestETA  = 1000 * 24 * 3600 // in seconds; more could overflow a time.Duration
)

// NewBar returns a bar for work that begins now.
func NewBar(p *Printer, verb, name string) Bar {
	return Bar{p: p, verb: verb, name: name, began: p.Now()}
}

// Step tells the bar that n steps are done. Most calls only return.
func (b *Bar) Step(n int) {
	if n%256 == 0 {
		b.Show(n, 0)
	}
}

// Show shows how many steps are done, and how many of them have failed, if the
// work takes long.
func (b *Bar) Show(done, failed int) {
	if b.p.JSON || !b.p.Stderr.TTY {
		return
	}

	now := b.p.Now()
	if b.since.IsZero() {
		b.since, b.first = now, done
	}

	if now.Sub(b.began) < barAfter || now.Before(b.next) {
		return
	}

	b.next = now.Add(barInterval)
	b.p.Stderr.Resize()
	b.p.Flush()
	// Some terminals scroll after a character in the last column.
	io.WriteString(b.p.Stderr, eraseLine+Cut("  "+b.line(done, failed, now), b.p.Stderr.Width-1))
	b.drawn = true
}

// eraseLine empties the line and goes to its start.
const eraseLine = "\r\x1b[K"

// line has first what matters most: a narrow terminal cuts it.
func (b *Bar) line(done, failed int, now time.Time) string {
	parts := []string{strings.TrimSpace(b.verb + " " + Cut(humanize.Safe(b.name), longestName))}
	count := humanize.Count(int64(done))
	if b.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d%%", min(done, b.Total)*100/b.Total))
		count += "/" + humanize.Count(int64(b.Total))
	}

	parts = append(parts, count)
	if failed > 0 {
		parts = append(parts, humanize.Count(int64(failed))+" failed")
	}

	rate := float64(done-b.first) / max(now.Sub(b.since).Seconds(), 1e-3)
	if rate > 0 && done < b.Total {
		left := min(float64(b.Total-done)/rate, longestETA)
		parts = append(parts, "ETA "+humanize.Age(humanize.Soon(time.Duration(left*float64(time.Second)))))
	}

	if rate >= 1 {
		parts = append(parts, humanize.Count(int64(rate))+"/s")
	}

	return strings.Join(parts, Gap)
}

// Clear removes the bar from the terminal.
func (b *Bar) Clear() {
	if b.drawn {
		io.WriteString(b.p.Stderr, eraseLine)
		b.drawn, b.next = false, time.Time{}
	}
}

// Finish replaces the bar by a line with the result. Short work had no bar, and
// gets no line.
func (b *Bar) Finish(result string) {
	b.Clear()
	if whole := b.p.Now().Sub(b.began); b.p.Stderr.TTY && whole >= barAfter {
		b.p.Tell("  %s in %s", result, humanize.Took(whole))
	}
}
