package harness

import "testing"

// TestClaimOnServerMaySkipTasksOfOpenTransactions checks histories of two
// workers on a server. Worker w1 claims task 2 while task 1, which comes first,
// is pending in the history.
func TestClaimOnServerMaySkipTasksOfOpenTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		insertEnds bool  // whether the transaction that inserts task 1 ends before the claim of task 2 begins
		claimBegan int64 // when the transaction that claims task 1 begins, in ms after the claim of task 2
		otherEnds  bool  // whether a claim of another worker has ended before the claim of task 2 begins
		want       int   // number of violations
	}{
		"the insert has not committed":           {insertEnds: false, claimBegan: 5, otherEnds: true, want: 0},
		"another claim has locked the task":      {insertEnds: true, claimBegan: -1, otherEnds: true, want: 0},
		"the task is visible and not claimed":    {insertEnds: true, claimBegan: 5, otherEnds: true, want: 1},
		"another claim may have locked the task": {insertEnds: true, claimBegan: 5, otherEnds: false, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := enqueuedHistory(quick) // adds workers w1 and w2 and task 1
			s.enqueue(2, quick)
			s.enqueue(3, quick)
			s.claim(3, "w2")
			s.wait(5)
			s.beat(2, "w2") // this event of a later transaction shows that the inserts have ended
			s.wait(5)
			s.claim(2, "w1")
			claimed := s.now
			s.wait(10)
			s.claim(1, "w2")
			s.complete(1)
			s.complete(2)
			s.complete(3)
			for i := range s.events {
				e := &s.events[i]
				e.xid, e.oldest, e.began = int64(100+i), int64(100+i), e.at
				switch {
				case e.op == "insert" && e.id == 1 && !c.insertEnds:
					e.xid = 1000
				case e.id == 3 && e.claims() && !c.otherEnds:
					e.xid = 1000
				case e.op == "update" && e.id == 1 && e.state == "running":
					e.began = claimed + c.claimBegan
				}
			}
			var got []Violation
			for _, v := range s.judge().Violations {
				if v.Invariant == "I6" {
					got = append(got, v)
				}
			}
			if len(got) != c.want {
				t.Errorf("got %d violations of I6 %v, want %d", len(got), got, c.want)
			}
		})
	}
}
