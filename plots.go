package main

import (
	"fmt"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// trendMinutes is how far back the plots of --follow reach.
const trendMinutes = 60

// plots draws what ended in the last hour, a bar for each minute, or for several where the terminal is narrow.
func (s *standing) plots(to stream) string {
	if s.trend == nil {
		return ""
	}
	const label = len("completed ")
	var b strings.Builder
	for _, row := range []struct {
		state jobs.State
		paint colour
	}{{jobs.Completed, green}, {jobs.Failed, red}} {
		values := make([]int, len(s.trend))
		sum := 0
		for i, minute := range s.trend {
			values[i] = minute.Ended[row.state]
			sum += values[i]
		}
		total := " " + humanize.Count(int64(sum)) + " in 1h"
		room := to.width - label - len(total)
		if sum == 0 || room < 10 {
			continue
		}
		per := 1
		for len(values)/per > room {
			per++
		}
		b.WriteString(fmt.Sprintf("%-*s", label, row.state) + to.paint(row.paint, blocks(values, per)) + total + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// blocks draws bars of eighths, each of so many values.
func blocks(values []int, per int) string {
	var bars []int
	most := 1
	for part := range slices.Chunk(values, per) {
		sum := 0
		for _, v := range part {
			sum += v
		}
		bars = append(bars, sum)
		most = max(most, sum)
	}
	var b strings.Builder
	for _, v := range bars {
		switch {
		case v == 0:
			b.WriteRune(' ')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[(v*8-1)/most])
		}
	}
	return b.String()
}
