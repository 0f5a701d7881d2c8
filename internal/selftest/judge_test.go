package selftest

import (
	"slices"
	"strings"
	"testing"
)

// good is a history in which every rule held: a worker is killed, another hangs, and their tasks are run by others.
func good() *story {
	s := newStory()
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
	s.end(1, lost)
	s.end(2, lost)
	s.add(event{op: "leave", worker: "w1"})
	s.claim(1, "w2")
	s.complete(1)
	s.claim(2, "w2")
	s.wait(storyLease)
	s.join("w3", 13)
	s.end(2, lost)
	s.claim(2, "w3")
	s.complete(2)
	return s
}

func TestAGoodHistoryBreaksNoRule(t *testing.T) {
	r := good().judge()
	if len(r.Violations) > 0 {
		t.Error(r.Violations)
	}
	if r.Claims != 5 || r.Losses != 3 || r.Enqueued != 2 || r.Figures.Recoveries != 1 || r.Figures.RecoveryMax != 0.3 || r.Figures.Leases != 1 || r.Figures.LeaseMax != 1 {
		t.Errorf("%+v", r)
	}
}

// A guardian died, which its worker tells itself, and somebody cancels the task meanwhile.
func TestALossThatIsCancelledIsTheWorkersOwnWord(t *testing.T) {
	s := newStory()
	s.join("w1", 11)
	s.enqueue(1, quick)
	s.claim(1, "w1")
	s.wait(100)
	s.note(3, opCancel, 1, 0, "")
	s.end(1, func(e *event) {
		e.state, e.attempt, e.losses, e.reason, e.err = "cancelled", 0, 1, "cancelled", "cancelled by root"
	})
	if r := s.judge(); len(r.Violations) > 0 {
		t.Error(r.Violations)
	}
	s.events[len(s.events)-1].err = lostText // taken by another, before its time
	if r := s.judge(); len(r.Violations) != 1 || r.Violations[0].Invariant != "I3" {
		t.Error(r.Violations)
	}
}

// Whoever is to wait for what has failed already is cancelled by its INSERT, and no update tells why.
func TestATaskMayBeCancelledByItsInsert(t *testing.T) {
	s := good()
	s.enqueue(3, quick)
	s.note(1, opCancel, 3, 0, "")
	s.update(3, func(e *event) { e.state, e.reason = "cancelled", "cancelled" })
	s.enqueue(4, quick)
	late := &s.events[len(s.events)-1]
	late.state, late.reason = "cancelled", "dependency"
	s.add(event{op: "depends", id: 4, generation: 3})
	if r := s.judge(); len(r.Violations) > 0 {
		t.Error(r.Violations)
	}
	s.events[len(s.events)-1].generation = 2 // which has completed
	if r := s.judge(); len(r.Violations) != 1 || r.Violations[0].Invariant != "I5" {
		t.Error(r.Violations)
	}
}

// Each bad history breaks the rules that it names, and no other.
func TestBadHistoriesBreakTheirRules(t *testing.T) {
	begin := func(k kind) *story {
		s := newStory()
		s.join("w1", 11)
		s.join("w2", 12)
		s.enqueue(1, k)
		return s
	}
	for name, c := range map[string]struct {
		want string
		tell func() *story
	}{
		"an acknowledged task is not there": {"I1", func() *story {
			s := good()
			s.note(1, opAck, 77, 0, "t:quick")
			return s
		}},
		"a task that nobody enqueued": {"I1", func() *story {
			s := good()
			s.notes = slices.DeleteFunc(s.notes, func(n note) bool { return n.op == opTry })
			return s
		}},
		"a task never ends": {"I1", func() *story { return begin(quick) }},
		"an end of an old claim is accepted": {"I2", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.wait(storyLease)
			s.end(1, lost)
			s.claim(1, "w2")
			s.update(1, func(e *event) { e.state, e.reason, e.attempt = "pending", "shutdown", 0 })
			s.add(event{op: "attempt", id: 1, generation: 2, worker: "w1"})
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"the result of an old claim is accepted": {"I2", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.wait(storyLease)
			s.end(1, lost)
			s.claim(1, "w2")
			s.end(1, func(e *event) { e.state, e.result = "completed", resultOf(2) })
			return s
		}},
		"an end is accepted twice": {"I2", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.complete(1)
			s.add(event{op: "attempt", id: 1, generation: 2, worker: "w1"})
			return s
		}},
		"two claim the same": {"I2 I3", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.update(1, func(e *event) { e.worker = "w2" })
			s.complete(1)
			return s
		}},
		"a lease is taken for over too early": {"I3", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.wait(storyLease - 100)
			s.end(1, lost)
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"a live worker is taken for dead": {"I3", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.end(1, lost)
			s.add(event{op: "leave", worker: "w1"})
			s.wait(100)
			s.note(0, opKill, 0, 0, "11")
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"a generation stays": {"I4", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.wait(storyLease)
			s.end(1, func(e *event) { lost(e); e.generation = e.oldGeneration })
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"a loss counts as an attempt": {"I5", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.wait(storyLease)
			s.end(1, func(e *event) { lost(e); e.state, e.attempt = "failed", e.oldAttempt })
			return s
		}},
		"poison is run for ever": {"I5", func() *story {
			s := begin(poison)
			for range poisonLosses + 1 {
				s.claim(1, "w1")
				s.wait(storyLease)
				s.end(1, lost)
			}
			s.claim(1, "w1")
			s.complete(1)
			return s
		}},
		"a suspect runs beside another": {"I5", func() *story {
			s := begin(poison)
			for range poisonLosses {
				s.claim(1, "w1")
				s.wait(storyLease)
				s.end(1, lost)
			}
			s.enqueue(2, quick)
			s.claim(1, "w1")
			s.claim(2, "w1")
			s.complete(2)
			s.wait(storyLease)
			s.end(1, func(e *event) { lost(e); e.state = "failed" })
			return s
		}},
		"a task waits behind a lesser one": {"I6", func() *story {
			s := begin(quick)
			s.enqueue(2, quick)
			s.claim(2, "w1")
			s.claim(1, "w2")
			s.complete(1)
			s.complete(2)
			return s
		}},
		"a lease is renewed by a stranger": {"I7", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.wait(100)
			s.beat(1, "w2")
			s.complete(1)
			return s
		}},
		"a lease is too long": {"I7", func() *story {
			s := begin(quick)
			s.claim(1, "w1")
			s.update(1, func(e *event) { e.generation, e.lease = e.oldGeneration, s.now+2*storyLease })
			s.complete(1)
			return s
		}},
		"a move that is none": {"I8", func() *story {
			s := begin(quick)
			s.update(1, func(e *event) { e.state = "completed" })
			return s
		}},
		"two executions at once": {"I9", func() *story {
			s := good()
			s.note(3, opOverlap, 1, 5, "command")
			return s
		}},
		"functions at once, though no worker hung": {"I9", func() *story {
			s := good()
			s.note(3, opOverlap, 1, 4, "function")
			return s
		}},
		"a second execution of one claim": {"I9", func() *story {
			s := good()
			s.note(3, opStart, 1, 2, "")
			return s
		}},
		"at most once, and twice": {"I9", func() *story {
			s := begin(atMostOnce)
			s.claim(1, "w1")
			s.end(1, func(e *event) { e.state, e.attempt, e.reason = "pending", 0, "shutdown" })
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"a command outlives its lease": {"I9", func() *story {
			s := begin(long)
			s.claim(1, "w1")
			s.wait(2 * storyLease)
			s.note(2, opAlive, 1, 2, "")
			s.end(1, lost)
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"a process outlives its worker": {"I10", func() *story {
			s := good()
			s.lastSeen[attemptProcess{99, 1, 1, 2, ownSession}] = (10_250 + 1100) * 1000
			return s
		}},
		"two unfinished tasks with a key": {"I12", func() *story {
			s := newStory()
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
	} {
		if r := c.tell().judge(); strings.Join(r.Broken(), " ") != c.want {
			t.Errorf("%s: broke %v, want %s: %v", name, r.Broken(), c.want, r.Violations)
		}
	}
}

func TestAFunctionMayOverlapWhenItOutlivesItsClaim(t *testing.T) {
	hung := good()
	hung.note(3, opOverlap, 2, 6, "function") // its worker before, w2, hung
	abandoned := newStory()
	abandoned.join("w1", 11)
	abandoned.join("w2", 12)
	abandoned.enqueue(1, quick)
	abandoned.claim(1, "w1")
	abandoned.end(1, func(e *event) { e.state, e.attempt, e.reason, e.err = "pending", 0, "shutdown", abandonedText })
	abandoned.claim(1, "w2")
	abandoned.note(3, opOverlap, 1, 4, "function")
	abandoned.complete(1)
	for name, s := range map[string]*story{"its worker hung": hung, "its worker stopped": abandoned} {
		if r := s.judge(); len(r.Violations) > 0 || r.Figures.Functions != 1 {
			t.Errorf("%s: got %v and %d overlaps of functions, want none and 1", name, r.Violations, r.Figures.Functions)
		}
	}
}

// A reaper revokes the claim of a worker that hangs before it kills its processes. Then nothing but the loss may be recorded.
func TestARevokedClaimIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		wait   int64
		end    func(*event)
		broken string
	}{
		"after its lease, and lost":           {storyLease, lost, ""},
		"before the end of its lease":         {storyLease / 2, lost, "I3"},
		"after its lease, and then completed": {storyLease, func(e *event) { e.state = "completed" }, "I2"},
	} {
		s := newStory()
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
		if broken := strings.Join(s.judge().Broken(), " "); broken != c.broken {
			t.Errorf("%s: broken %q, want %q", name, broken, c.broken)
		}
	}
}
