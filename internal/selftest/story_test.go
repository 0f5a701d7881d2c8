package selftest

import (
	"slices"

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
