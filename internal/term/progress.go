package term

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Progress says how far some work is, such as the tasks of a batch. The work consists of steps.
type Progress struct {
	Done      int     // number of steps that have succeeded or failed
	Failed    int     // number of steps that have failed
	Total     int     // number of all steps; 0 if unknown
	PerSecond float64 // steps per second, in about the last minute; 0 if unknown
}

// The method "left" estimates the time until all steps are done. It returns 0 if the time is unknown.
func (w Progress) left() time.Duration {
	if w.PerSecond <= 0 || w.Done >= w.Total {
		return 0
	}
	const longest = 1000 * 24 * time.Hour // limit of the result; a larger number could overflow a time.Duration
	return time.Duration(min(float64(w.Total-w.Done)/w.PerSecond*float64(time.Second), float64(longest)))
}

// The methods rate, eta and failures each return a part of the text of Line. The part is empty if its value is unknown or zero.
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

// percent returns the percentage of the steps that are done, rounded down. So it returns 100 only if all are done.
func (w Progress) percent() int { return min(w.Done, w.Total) * 100 / max(w.Total, 1) }

// Line returns the progress as one line of at most width cells, with a bar if the total is known:
//
//	head  ████████████░░░░░░░░  62%  7,440/12,000  212/s  ETA 21s  17 failed
//
// If the line is too narrow, Line first omits the head. If that is not enough, it omits the counts, then the rate, then the estimate, and
// then the failures.
func (w Progress) Line(head string, width int) string {
	tail := []string{"", humanize.Count(int64(w.Done)), w.rate(), w.eta(), w.failures()}
	bar := 0
	if w.Total > 0 {
		tail[0], bar = fmt.Sprintf("%d%%", w.percent()), shortestBar
		tail[1] += "/" + humanize.Count(int64(w.Total))
	}
	gap := "  "
	// room returns how many cells are free for the head and the bar, beside the texts in tail.
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
	shortestHead = 12 // minimum width of the head; if there is less space, the head is left out
	shortestBar  = 5
	longestBar   = 40
)

// bar returns a bar with n cells, or an empty string if n is too small for a bar.
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

// joinParts joins the parts, but leaves out empty ones.
func joinParts(gap string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), gap)
}

// Meter measures how many steps are done per second. It measures over at least the last 30 s and the last 10 steps, and usually over at
// most a minute. So the result changes soon when the speed changes, but it does not jump when steps are rare. The zero Meter is ready for
// use.
type Meter struct{ older, newer measurement }

type measurement struct {
	at   time.Time
	done int
}

const (
	meterTime  = 30 * time.Second
	meterSteps = 10
)

// PerSecond returns the number of steps per second. The parameter "done" is the number of steps that are done at the time now. The first
// call returns 0, because it only begins the measurement.
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
