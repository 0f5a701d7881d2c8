package selftest

import (
	"slices"
	"strings"
	"testing"

	"example.com/runner/jobs"
)

// story builds a history by hand. Its clock is ms of the wall, and the notes' the same from 0 on.
type story struct {
	evidence
	events []event
	now    int64
	tasks  map[int64]event // as they are
}

const storyLease = 1000

func newStory() *story {
	s := &story{now: 10_000, tasks: map[int64]event{}}
	s.lastSeen = map[attemptProcess]int64{}
	return s
}

func (s *story) add(e event) {
	e.seq, e.at = int64(len(s.events)+1), s.now
	s.events = append(s.events, e)
}

func (s *story) wait(ms int64) { s.now += ms }

func (s *story) note(pid int, op string, task, generation int64, text string) {
	s.notes = append(s.notes, note{s.now * 1000, pid, op, task, generation, text})
}

func (s *story) join(worker string, pid int) {
	s.lifetimes = append(s.lifetimes, lifetime{pid: pid, started: (s.now - 1) * 1000, ended: 1 << 50})
	s.add(event{op: "join", worker: worker, lease: storyLease, job: `["command"]`, pid: pid})
}

func (s *story) enqueue(id int64, k kind) {
	token := "t:" + string(k)
	s.note(1, opTry, 0, 0, token)
	e := event{op: "insert", id: id, state: "pending", generation: 1, maxAttempts: 1, maxLosses: 3, priority: 5, queue: "a", job: jobs.CommandJob, label: token}
	switch k {
	case atMostOnce:
		e.maxLosses = 0
	case poison:
		e.maxLosses = poisonLosses
	}
	s.add(e)
	s.tasks[id] = e
	s.note(1, opAck, id, 0, token)
}

// update changes a task; change is handed the event with everything as it was, and one more generation.
func (s *story) update(id int64, change func(*event)) {
	t := s.tasks[id]
	e := event{op: "update", id: id, oldState: t.state, state: t.state, oldGeneration: t.generation, generation: t.generation + 1, oldWorker: t.worker,
		worker: t.worker, oldLease: t.lease, oldAttempt: t.attempt, attempt: t.attempt, oldLosses: t.losses, losses: t.losses,
		maxAttempts: t.maxAttempts, maxLosses: t.maxLosses}
	change(&e)
	s.add(e)
	t.state, t.generation, t.worker, t.lease, t.attempt, t.losses = e.state, e.generation, e.worker, e.lease, e.attempt, e.losses
	s.tasks[id] = t
}

func (s *story) claim(id int64, worker string) {
	s.update(id, func(e *event) {
		e.state, e.worker, e.lease, e.attempt = "running", worker, s.now+storyLease, e.attempt+1
	})
	s.note(2, opStart, id, s.tasks[id].generation, "")
}

func (s *story) beat(id int64, worker string) {
	s.update(id, func(e *event) { e.generation, e.lease = e.oldGeneration, s.now+storyLease })
	s.add(event{op: "beat", worker: worker})
}

func (s *story) end(id int64, change func(*event)) {
	claim := s.tasks[id]
	s.update(id, func(e *event) { e.result = resultOf(claim.generation); change(e) })
	last := s.events[len(s.events)-1]
	s.add(event{op: "attempt", id: id, generation: claim.generation, worker: claim.worker, reason: last.reason, err: last.err})
}

func (s *story) complete(id int64) { s.end(id, func(e *event) { e.state = "completed" }) }

// revoke takes a claim away from its worker, which keeps the task until the loss is recorded.
func (s *story) revoke(id int64) { s.update(id, func(e *event) { e.lease = 0 }) }

// endRevoked records the end of a claim that was revoked.
func (s *story) endRevoked(id int64, change func(*event)) {
	claim := s.tasks[id]
	s.end(id, change)
	s.events[len(s.events)-1].generation = claim.generation - 1
}

func lost(e *event) {
	e.state, e.attempt, e.losses, e.reason, e.err = "pending", e.attempt-1, e.losses+1, "lost", lostText
}

func (s *story) judge() *Report {
	r := newReport(Options{}, "")
	s.judgeInto(r)
	return r
}

func (s *story) judgeInto(r *Report) {
	s.evidence.events = slices.Values(s.events)
	s.evidence.judge(r)
}

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
