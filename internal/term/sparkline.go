package term

import (
	"slices"
	"strings"
)

// Sparkline returns a line of bars, one cell wide and up to eight eighths high. Each bar stands for the sum of per values.
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
