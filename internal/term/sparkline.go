package term

import (
	"slices"
	"strings"
)

// Sparkline returns a line of bars. A bar is one cell wide and up to one cell high, in steps of an eighth. It stands for the sum of as many
// values as the parameter per says.
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
