package db

import (
	"testing"

	"example.com/runner/internal/testkit"
)

func TestAPriorityGetsARangeOfItsOwn(t *testing.T) {
	whole := []idRange{{leastPriority, greatestPriority, 7}}
	got := splitAt(whole, 5)
	testkit.Equal(t, "ranges", got, []idRange{{6, greatestPriority, 7}, {5, 5, 7}, {leastPriority, 4, 7}})
	testkit.Equal(t, "ranges after the same priority", splitAt(got, 5), got)
	testkit.Equal(t, "ranges after the next priority", splitAt(got, 6),
		[]idRange{{7, greatestPriority, 7}, {6, 6, 7}, {5, 5, 7}, {leastPriority, 4, 7}})
	testkit.Equal(t, "ranges after the least priority", splitAt(whole, leastPriority),
		[]idRange{{leastPriority + 1, greatestPriority, 7}, {leastPriority, leastPriority, 7}})
	many := whole
	for priority := range int64(100) {
		many = splitAt(many, 2*priority)
	}
	testkit.Equal(t, "at most so many ranges", len(many) <= 2*maxSplits+2, true)
}

// TestALookRaisesFloors checks that a look at the pending tasks raises floors. A floor stays below the first pending task of its range
// of priorities. It is at most the highest id at the previous look, which is 100 in this test. A floor never gets lower.
func TestALookRaisesFloors(t *testing.T) {
	p, q := part{"a", "j"}, part{"b", "j"}
	ranges := []partRange{{p, idRange{6, 9, 10}}, {p, idRange{5, 5, 20}}, {p, idRange{0, 4, 30}}, {q, idRange{0, 9, 0}},
		{q, idRange{-1, -1, 200}}}
	got := raised(ranges, []firstTask{{1, 5, 90}, {2, 3, 60}, {3, 9, 120}}, 100)
	testkit.Equal(t, "floors of a", got[p], []idRange{{6, 9, 100}, {5, 5, 89}, {4, 4, 100}, {3, 3, 59}, {0, 2, 30}})
	testkit.Equal(t, "floors of b", got[q], []idRange{{9, 9, 100}, {0, 8, 0}, {-1, -1, 200}})
}
