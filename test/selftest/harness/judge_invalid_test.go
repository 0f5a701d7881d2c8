package harness

import (
	"slices"
	"testing"
)

// historyCase is a history and the invariants that it violates.
type historyCase struct {
	want  string // names of the violated invariants, separated by spaces
	build func() *historyBuilder
}

// enqueuedHistory returns a history in which workers w1 and w2 have joined and
// task 1 is pending.
func enqueuedHistory(k kind) *historyBuilder {
	s := newHistory()
	s.join("w1", 11)
	s.join("w2", 12)
	s.enqueue(1, k)
	return s
}

// TestInvalidHistories checks that each invalid history violates the named
// invariants and no others.
func TestInvalidHistories(t *testing.T) {
	checkHistories(t, invalidEnds)
	checkHistories(t, invalidClaims)
	checkHistories(t, invalidLeasesAndStates)
	checkHistories(t, invalidExecutions)
}

// invalidEnds are histories in which a task is lost, or in which runner accepts
// the end of an old claim. The rules I1 and I2 of docs/reliability.md forbid
// them.
var invalidEnds = map[string]historyCase{
	"an acknowledged task is missing": {"I1", func() *historyBuilder {
		s := validHistory()
		s.note(1, opAck, 77, 0, "t:quick")
		return s
	}},
	"a task that nobody enqueued": {"I1", func() *historyBuilder {
		s := validHistory()
		s.notes = slices.DeleteFunc(s.notes, func(n note) bool { return n.op == opTry })
		return s
	}},
	"a task never ends": {"I1", func() *historyBuilder { return enqueuedHistory(quick) }},
	"an end of an old claim is accepted": {"I2", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.wait(testLease)
		s.end(1, lostByReaper)
		s.claim(1, "w2")
		s.update(1, func(e *event) { e.state, e.reason, e.attempt = "pending", "shutdown", 0 })
		s.add(event{op: "attempt", id: 1, generation: 2, worker: "w1"})
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"the result of an old claim is accepted": {"I2", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.wait(testLease)
		s.end(1, lostByReaper)
		s.claim(1, "w2")
		s.end(1, func(e *event) { e.state, e.result = "completed", resultOf(2) })
		return s
	}},
	"an end is accepted twice": {"I2", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.complete(1)
		s.add(event{op: "attempt", id: 1, generation: 2, worker: "w1"})
		return s
	}},
}

// invalidClaims are histories in which a claim is wrong, or is wrongly recorded
// as lost. The rules I3, I5 and I6 of docs/reliability.md forbid them.
var invalidClaims = map[string]historyCase{
	"two workers claim the same task": {"I2 I3", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.update(1, func(e *event) { e.worker = "w2" })
		s.complete(1)
		return s
	}},
	"a lease is declared expired too early": {"I3", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.wait(testLease - 100)
		s.end(1, lostByReaper)
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"a living worker is declared dead": {"I3", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.end(1, lostByReaper)
		s.add(event{op: "leave", worker: "w1"})
		s.wait(100)
		s.note(0, opKill, 0, 0, "11")
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"a loss counts as an attempt": {"I5", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.wait(testLease)
		s.end(1, func(e *event) { lostByReaper(e); e.state, e.attempt = "failed", e.oldAttempt })
		return s
	}},
	"a task exceeds its limit of losses": {"I5", func() *historyBuilder {
		s := enqueuedHistory(poison)
		for range poisonLosses + 1 {
			s.claim(1, "w1")
			s.wait(testLease)
			s.end(1, lostByReaper)
		}
		s.claim(1, "w1")
		s.complete(1)
		return s
	}},
	"a suspect runs while its worker has another task": {"I5", func() *historyBuilder {
		s := enqueuedHistory(poison)
		for range poisonLosses {
			s.claim(1, "w1")
			s.wait(testLease)
			s.end(1, lostByReaper)
		}
		s.enqueue(2, quick)
		s.claim(1, "w1")
		s.claim(2, "w1")
		s.complete(2)
		s.wait(testLease)
		s.end(1, func(e *event) { lostByReaper(e); e.state = "failed" })
		return s
	}},
	"a task is claimed before one of higher priority": {"I6", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.enqueue(2, quick)
		s.claim(2, "w1")
		s.claim(1, "w2")
		s.complete(1)
		s.complete(2)
		return s
	}},
}

// invalidLeasesAndStates are histories with a wrong generation, lease, state or
// unique key. The rules I4, I7, I8 and I12 of docs/reliability.md forbid them.
var invalidLeasesAndStates = map[string]historyCase{
	"a loss keeps the generation": {"I4", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.wait(testLease)
		s.end(1, func(e *event) { lostByReaper(e); e.generation = e.oldGeneration })
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"a worker renews the lease of another worker": {"I7", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.wait(100)
		s.beat(1, "w2")
		s.complete(1)
		return s
	}},
	"a lease is too long": {"I7", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.claim(1, "w1")
		s.update(1, func(e *event) { e.generation, e.lease = e.oldGeneration, s.now+2*testLease })
		s.complete(1)
		return s
	}},
	"a pending task is completed without a claim": {"I8", func() *historyBuilder {
		s := enqueuedHistory(quick)
		s.update(1, func(e *event) { e.state = "completed" })
		return s
	}},
	"two unfinished tasks with the same unique key": {"I12", func() *historyBuilder {
		s := newHistory()
		s.join("w1", 11)
		for id := range int64(2) {
			s.enqueue(id+1, quick)
			s.events[len(s.events)-1].key = "k"
		}
		for id := range int64(2) {
			s.claim(id+1, "w1")
			s.complete(id + 1)
		}
		return s
	}},
}

// invalidExecutions are histories in which the code of a task runs at a time at
// which it must not run. The rules I9 and I10 of docs/reliability.md forbid
// them.
var invalidExecutions = map[string]historyCase{
	"two executions of a command at once": {"I9", func() *historyBuilder {
		s := validHistory()
		s.note(3, opOverlap, 1, 5, "command")
		return s
	}},
	"two executions of a function at once, but no worker hung": {"I9", func() *historyBuilder {
		s := validHistory()
		s.note(3, opOverlap, 1, 4, "function")
		return s
	}},
	"a second execution of one claim": {"I9", func() *historyBuilder {
		s := validHistory()
		s.note(3, opStart, 1, 2, "")
		return s
	}},
	"an at-most-once task runs twice": {"I9", func() *historyBuilder {
		s := enqueuedHistory(atMostOnce)
		s.claim(1, "w1")
		s.end(1, func(e *event) { e.state, e.attempt, e.reason = "pending", 0, "shutdown" })
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"a command outlives its lease": {"I9", func() *historyBuilder {
		s := enqueuedHistory(long)
		s.claim(1, "w1")
		s.wait(2 * testLease)
		s.note(2, opAlive, 1, 2, "")
		s.end(1, lostByReaper)
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"a process outlives its worker": {"I10", func() *historyBuilder {
		s := validHistory()
		s.lastSeen[attemptProcess{99, 1, 1, 2, ownSession}] = (10_250 + 1100) * 1000
		return s
	}},
}
