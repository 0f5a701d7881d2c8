package term

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Progress is the state of work in steps, such as a wait for tasks.
type Progress struct {
	Done      int     // steps that have ended, with success or failure
	Failed    int     // steps in Done that failed
	Total     int     // all steps; 0 if unknown
	PerSecond float64 // rate of about the last minute; 0 if unknown
}

// left returns an estimate of the time until all steps are done. It is 0 if it is unknown.
func (w Progress) left() time.Duration {
	if w.PerSecond <= 0 || w.Done >= w.Total {
		return 0
	}
	const longest = 1000 * 24 * time.Hour // a longer estimate is of no use, and could overflow
	return time.Duration(min(float64(w.Total-w.Done)/w.PerSecond*float64(time.Second), float64(longest)))
}

// rate, eta and failures each return a part of the text, or an empty string if their value is unknown or zero.
func (w Progress) rate() string {
	if w.PerSecond <= 0 {
		return ""
	}
	return rate(w.PerSecond)
}

func (w Progress) eta() string {
	switch left := w.left(); {
	case left == 0:
		return ""
	case left < 10*time.Second:
		return "ETA " + humanize.Age(left+time.Second-1)
	default:
		return "ETA " + humanize.Took(left)
	}
}

func (w Progress) failures() string {
	if w.Failed == 0 {
		return ""
	}
	return humanize.Count(int64(w.Failed)) + " failed"
}

// percent returns the percentage of the steps that are done. It returns 100 only when all steps are done.
func (w Progress) percent() int { return min(w.Done, w.Total) * 100 / max(w.Total, 1) }

// Line returns the progress as one line of at most width cells, with a bar if the total is known:
//
//	head  ████████████░░░░░░░░  62%  7,440/12,000  212/s  ETA 21s  17 failed
//
// If the line is too narrow, Line first omits the head. Then it omits the counts, the rate, the estimate and the failures, until the rest
// fits.
func (w Progress) Line(head string, width int) string {
	tail := []string{"", humanize.Count(int64(w.Done)), w.rate(), w.eta(), w.failures()}
	bar := 0
	if w.Total > 0 {
		tail[0], bar = fmt.Sprintf("%d%%", w.percent()), shortestBar
		tail[1] += "/" + humanize.Count(int64(w.Total))
	}
	gap := "  "
	// room returns the cells that are left for the head and the bar beside the other parts.
	room := func() int { return width - Cells(joinParts(gap, tail...)) - len(gap) }
	if free := room() - bar - len(gap); Cells(head) > free {
		if head = Cut(head, free); free < shortestHead {
			head, gap = "", " "
		}
	}
	for i := 1; i < len(tail) && room() < bar; i++ {
		tail[i] = ""
	}
	if head != "" && bar > 0 {
		bar = min(longestBar, room()-Cells(head)-len(gap))
	} else if bar > 0 {
		bar = min(longestBar, room())
	}
	return Cut(joinParts(gap, head, w.bar(bar), joinParts(gap, tail...)), width)
}

const (
	shortestHead = 12 // a head that must be cut to fewer cells is omitted
	shortestBar  = 5
	longestBar   = 40
)

// bar returns a bar of n cells, or an empty string if it would be too short.
func (w Progress) bar(n int) string {
	if n < shortestBar {
		return ""
	}
	full := min((w.Done*n+w.Total/2)/w.Total, n)
	return strings.Repeat("█", full) + strings.Repeat("░", n-full)
}

// Text returns the progress as a line for a log, such as "7,440 of 12,000 tasks ended (62%), 212/s, ETA 21s, 17 failed".
func (w Progress) Text() string {
	counts := fmt.Sprintf("%s of %s tasks ended (%d%%)", humanize.Count(int64(w.Done)), humanize.Count(int64(w.Total)), w.percent())
	return joinParts(", ", counts, w.rate(), w.eta(), w.failures())
}

// joinParts joins the parts that are not empty.
func joinParts(gap string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), gap)
}

// Meter measures the rate of steps. It uses at least the last 30 s and the last 10 steps, and usually at most the last minute. The rate
// therefore follows changes soon, and it does not jump when the tasks are slow. The zero Meter is ready for use.
type Meter struct{ older, newer measurement }

type measurement struct {
	at   time.Time
	done int
}

const (
	meterTime  = 30 * time.Second
	meterSteps = 10
)

// PerSecond returns the rate of steps. At the time now, done is the number of all finished steps. The first call returns 0, because its
// steps were finished before the measurement began.
func (m *Meter) PerSecond(now time.Time, done int) float64 {
	current := measurement{now, done}
	if m.older.at.IsZero() {
		m.older, m.newer = current, current
	}
	took := now.Sub(m.older.at)
	steps := done - m.older.done
	if now.Sub(m.newer.at) >= meterTime && done-m.newer.done >= meterSteps {
		m.older, m.newer = m.newer, current
	}
	if took <= 0 || steps <= 0 {
		return 0
	}
	return float64(steps) / took.Seconds()
}
