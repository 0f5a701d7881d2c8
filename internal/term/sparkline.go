package term

import (
	"slices"
	"strings"
)

// Sparkline returns a small bar chart in one line of text. Each bar is one cell wide and has one of eight heights. A bar stands for the sum
// of several values. The parameter "per" is the number of values in a bar.
func Sparkline(values []int, per int) string {
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
