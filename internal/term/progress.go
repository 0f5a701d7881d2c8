package term

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Progress says how far some work is, such as the tasks of a batch. The work
// consists of steps. (The bars of libraries wrap on a narrow terminal, and
// compile regular expressions when any command starts.)
type Progress struct {
	Done      int     // number of steps that have succeeded or failed
	Failed    int     // number of steps that have failed
	Total     int     // number of all steps; 0 if unknown
	PerSecond float64 // steps per second, in about the last minute; 0 if unknown
}

// numbers returns the rate, the estimated time left, and the failures. Each is
// empty if it's unknown or zero.
func (w Progress) numbers() (rate, left, failed string) {
	switch n := w.PerSecond; {
	case n <= 0:
	case n < 1:
		rate = fmt.Sprintf("%.2g/min", n*60)
	case n < 10:
		rate = fmt.Sprintf("%.1f/s", n)
	default:
		rate = humanize.Count(int64(n)) + "/s"
	}
	if w.PerSecond > 0 && w.Done < w.Total {
		const longest = 1000 * 24 * 3600 // seconds; more could overflow a time.Duration
		seconds := min(float64(w.Total-w.Done)/w.PerSecond, longest)
		left = "ETA " + humanize.Age(humanize.Soon(time.Duration(seconds*float64(time.Second))))
	}
	if w.Failed > 0 {
		failed = humanize.Count(int64(w.Failed)) + " failed"
	}
	return rate, left, failed
}

// percent returns the percentage of the steps that are done, rounded down. So it returns 100 only if all are done.
func (w Progress) percent() int { return min(w.Done, w.Total) * 100 / max(w.Total, 1) }

const (
	shortestBar = 5
	longestBar  = 40
)

// Line returns the progress as one line of at most width cells, with a bar if the total is known:
//
//	head  ████████████░░░░░░░░  62%  7,440/12,000  212/s  ETA 21s  17 failed
//
// If the line is too narrow, Line omits the head, then the counts, the rate,
// the estimate and the failures.
func (w Progress) Line(head string, width int) string {
	rate, left, failed := w.numbers()
	done, percent, bar := humanize.Count(int64(w.Done)), "", 0
	if w.Total > 0 {
		done += "/" + humanize.Count(int64(w.Total))
		percent, bar = fmt.Sprintf("%d%%", w.percent()), shortestBar+len(Gap)
	}
	parts := []string{head, percent, done, rate, left, failed}
	for _, i := range []int{0, 2, 3, 4, 5} {
		if bar+Cells(joinParts(Gap, parts...)) <= width {
			break
		}
		parts[i] = ""
	}
	if bar > 0 {
		free := width - Cells(joinParts(Gap, parts...)) - len(Gap)
		parts = slices.Insert(parts, 1, w.bar(min(free, longestBar)))
	}
	return Cut(joinParts(Gap, parts...), width)
}

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
	rate, left, failed := w.numbers()
	return joinParts(", ", counts, rate, left, failed)
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
