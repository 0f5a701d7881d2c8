package web

import (
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

func TestRank(t *testing.T) {
	var sorted []time.Duration
	testkit.Equal(t, "rank in an empty list", rank(sorted, 95), 0)
	for n := 1; n <= 200; n++ {
		sorted = append(sorted, time.Duration(n))
		for _, percent := range []int{50, 95} {
			got, below := rank(sorted, percent), 0
			for _, d := range sorted {
				if d <= got {
					below++
				}
			}
			if below*100 < percent*n || (below-1)*100 >= percent*n {
				t.Errorf("of 1..%d, %d percent are at most %d", n, percent, got)
			}
		}
	}
}
