package harness

import (
	"fmt"
	"strings"
	"testing"
)

// validHistory returns a history without a violation. One worker is killed,
// another one hangs, and others run their tasks.
func validHistory() *historyBuilder {
	s := newHistory()
	s.join("w1", 11)
	s.join("w2", 12)
	s.enqueue(1, quick)
	s.enqueue(2, quick)
	s.claim(1, "w1")
	s.claim(2, "w1")
	s.wait(200)
	s.beat(1, "w1")
	s.wait(50)
	s.note(0, opKill, 0, 0, "11")
	s.wait(300)
	s.end(1, lostByReaper)
	s.end(2, lostByReaper)
	s.add(event{op: "leave", worker: "w1"})
	s.claim(1, "w2")
	s.complete(1)
	s.claim(2, "w2")
	s.wait(testLease)
	s.join("w3", 13)
	s.end(2, lostByReaper)
	s.claim(2, "w3")
	s.complete(2)
	return s
}

func TestValidHistoryHasNoViolation(t *testing.T) {
	r := validHistory().judge()
	checkViolations(t, r)
	f := r.Figures
	got := fmt.Sprintln("claims", r.Claims, "losses", r.Losses, "enqueued", r.Enqueued,
		"recoveries", f.Recoveries, f.RecoveryMax, "by lease", f.Leases, f.LeaseMax)
	if want := "claims 5 losses 3 enqueued 2 recoveries 1 0.3 by lease 1 1\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCancelledLossIsReportedByWorker checks two histories. In both, a client
// cancels a running task, and then the task is lost because its guardian dies.
// In the first history the worker is alive and reports the loss itself, as it
// must. In the second history another worker reports the loss before the lease
// has ended. That violates I3 of docs/reliability.md: no worker takes a task
// from a live worker.
func TestCancelledLossIsReportedByWorker(t *testing.T) {
	s := newHistory()
	s.join("w1", 11)
	s.enqueue(1, quick)
	s.claim(1, "w1")
	s.wait(100)
	s.note(3, opCancel, 1, 0, "")
	s.end(1, func(e *event) {
		e.state, e.attempt, e.losses, e.reason, e.err = "cancelled", 0, 1, "cancelled", "cancelled by root"
	})
	checkViolations(t, s.judge())
	s.events[len(s.events)-1].err = lostText // this error says that another worker took the task
	checkViolations(t, s.judge(), "I3")
}

// TestTaskMayBeCancelledByItsInsert inserts a task whose dependency has already
// failed. The insert itself cancels the task, so the history has no update of
// the task that names a reason.
func TestTaskMayBeCancelledByItsInsert(t *testing.T) {
	s := validHistory()
	s.enqueue(3, quick)
	s.note(1, opCancel, 3, 0, "")
	s.update(3, func(e *event) { e.state, e.reason = "cancelled", "cancelled" })
	s.enqueue(4, quick)
	late := &s.events[len(s.events)-1]
	late.state, late.reason = "cancelled", "dependency"
	s.add(event{op: "depends", id: 4, generation: 3})
	checkViolations(t, s.judge())
	// In an event "depends", the field generation holds the id of the
	// dependency. So task 4 now depends on task 2. Task 2 has completed, so the
	// insert must not cancel task 4.
	s.events[len(s.events)-1].generation = 2
	checkViolations(t, s.judge(), "I5")
}

func TestFunctionMayOverlapWhenItOutlivesItsClaim(t *testing.T) {
	hung := validHistory()
	hung.note(3, opOverlap, 2, 6, "function") // the earlier execution of task 2 ran on worker w2, which hung later
	abandoned := newHistory()
	abandoned.join("w1", 11)
	abandoned.join("w2", 12)
	abandoned.enqueue(1, quick)
	abandoned.claim(1, "w1")
	abandoned.end(1, func(e *event) { e.state, e.attempt, e.reason, e.err = "pending", 0, "shutdown", abandonedText })
	abandoned.claim(1, "w2")
	abandoned.note(3, opOverlap, 1, 4, "function")
	abandoned.complete(1)
	for name, s := range map[string]*historyBuilder{"its worker hung": hung, "its worker stopped": abandoned} {
		if r := s.judge(); len(r.Violations) > 0 || r.Figures.Functions != 1 {
			t.Errorf("%s: got violations %v and %d overlaps of functions, want none and 1", name, r.Violations, r.Figures.Functions)
		}
	}
}

// TestRevokedClaimIsLost checks histories in which another worker revokes the
// claim of a hung worker before it kills the processes. After the revocation
// only a loss of the claim may be recorded.
func TestRevokedClaimIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		wait int64
		end  func(*event)
		want string
	}{
		"after its lease, and lost":           {testLease, lostByReaper, ""},
		"before the end of its lease":         {testLease / 2, lostByReaper, "I3"},
		"after its lease, and then completed": {testLease, func(e *event) { e.state = "completed" }, "I2"},
	} {
		s := newHistory()
		s.join("w1", 11)
		s.join("w2", 12)
		s.enqueue(1, quick)
		s.claim(1, "w1")
		claim := s.tasks[1].generation
		s.wait(c.wait)
		s.update(1, func(e *event) { e.lease = 0 })
		s.wait(c.wait)
		s.update(1, func(e *event) { e.result = resultOf(claim); c.end(e) })
		s.add(event{op: "attempt", id: 1, generation: claim, worker: "w1", err: s.events[len(s.events)-1].err})
		if s.tasks[1].state == "pending" {
			s.claim(1, "w2")
			s.complete(1)
		}
		if got := strings.Join(s.judge().Broken(), " "); got != c.want {
			t.Errorf("%s: got violations of %q, want %q", name, got, c.want)
		}
	}
}
