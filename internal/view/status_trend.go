package view

import (
	"fmt"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// TrendMinutes is how many minutes the charts of --follow show.
const TrendMinutes = 60

// charts returns bar charts of the tasks that ended in the last hour. A bar stands for one minute. On a narrow terminal it stands for
// several minutes.
func (s *Status) charts(to term.Stream) string {
	if s.Trend == nil {
		return ""
	}
	const label = len("completed ")
	var b strings.Builder
	for _, row := range []struct {
		state jobs.State
		paint term.Colour
	}{{jobs.Completed, term.Green}, {jobs.Failed, term.Red}} {
		values := make([]int, len(s.Trend))
		sum := 0
		for i, minute := range s.Trend {
			values[i] = minute.Ended[row.state]
			sum += values[i]
		}
		total := " " + humanize.Count(int64(sum)) + " in 1h"
		room := to.Width - label - len(total)
		if sum == 0 || room < 10 {
			continue
		}
		per := 1
		for len(values)/per > room {
			per++
		}
		b.WriteString(fmt.Sprintf("%-*s", label, row.state) + to.Paint(row.paint, term.Sparkline(values, per)) + total + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}
