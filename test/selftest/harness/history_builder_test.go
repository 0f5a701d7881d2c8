package harness

import (
	"slices"
	"strings"
	"testing"

	"example.com/runner/jobs/command"
)

// historyBuilder builds a history by hand. now is the current time of the wall
// clock in ms. The clock of the notes counts µs, so it shows 1000 times the
// number in "now".
type historyBuilder struct {
	evidence
	events []event
	now    int64
	tasks  map[int64]event // last event of each task; it has the current values of the task
}

const testLease = 1000

func newHistory() *historyBuilder {
	s := &historyBuilder{now: 10_000, tasks: map[int64]event{}}
	s.lastSeen = map[attemptProcess]int64{}
	return s
}

func (s *historyBuilder) add(e event) {
	e.seq, e.at = int64(len(s.events)+1), s.now
	s.events = append(s.events, e)
}

func (s *historyBuilder) wait(ms int64) { s.now += ms }

func (s *historyBuilder) note(pid int, op string, task, generation int64, text string) {
	s.notes = append(s.notes, note{s.now * 1000, pid, op, task, generation, text})
}

func (s *historyBuilder) join(worker string, pid int) {
	s.lifetimes = append(s.lifetimes, lifetime{pid: pid, started: (s.now - 1) * 1000, ended: 1 << 50})
	s.add(event{op: "join", worker: worker, lease: testLease, job: `["command"]`, pid: pid})
}

func (s *historyBuilder) enqueue(id int64, k kind) {
	token := "t:" + string(k)
	s.note(1, opTry, 0, 0, token)
	e := event{op: "insert", id: id, state: "pending", generation: 1, maxAttempts: 1, maxLosses: 3, priority: 5, queue: "a",
		job: command.Job, label: token}
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

// update changes a task. change gets an event with the current values and the
// next generation, and modifies it.
func (s *historyBuilder) update(id int64, change func(*event)) {
	t := s.tasks[id]
	e := event{op: "update", id: id, oldState: t.state, state: t.state, oldGeneration: t.generation, generation: t.generation + 1,
		oldWorker: t.worker, worker: t.worker, oldLease: t.lease, oldAttempt: t.attempt, attempt: t.attempt,
		oldLosses: t.losses, losses: t.losses,
		maxAttempts: t.maxAttempts, maxLosses: t.maxLosses}
	change(&e)
	s.add(e)
	t.state, t.generation, t.worker, t.lease, t.attempt, t.losses = e.state, e.generation, e.worker, e.lease, e.attempt, e.losses
	s.tasks[id] = t
}

func (s *historyBuilder) claim(id int64, worker string) {
	s.update(id, func(e *event) {
		e.state, e.worker, e.lease, e.attempt = "running", worker, s.now+testLease, e.attempt+1
	})
	s.note(2, opStart, id, s.tasks[id].generation, "")
}

func (s *historyBuilder) beat(id int64, worker string) {
	s.update(id, func(e *event) { e.generation, e.lease = e.oldGeneration, s.now+testLease })
	s.add(event{op: "beat", worker: worker})
}

func (s *historyBuilder) end(id int64, change func(*event)) {
	claim := s.tasks[id]
	s.update(id, func(e *event) { e.result = resultOf(claim.generation); change(e) })
	last := s.events[len(s.events)-1]
	s.add(event{op: "attempt", id: id, generation: claim.generation, worker: claim.worker, reason: last.reason, err: last.err})
}

func (s *historyBuilder) complete(id int64) { s.end(id, func(e *event) { e.state = "completed" }) }

// revoke takes a claim from its worker. The task stays in the state running
// until a later event records that the claim was lost.
func (s *historyBuilder) revoke(id int64) { s.update(id, func(e *event) { e.lease = 0 }) }

// endRevoked records the end of a revoked claim.
func (s *historyBuilder) endRevoked(id int64, change func(*event)) {
	claim := s.tasks[id]
	s.end(id, change)
	s.events[len(s.events)-1].generation = claim.generation - 1
}

func lostByReaper(e *event) {
	e.state, e.attempt, e.losses, e.reason, e.err = "pending", e.attempt-1, e.losses+1, "lost", lostText
}

func (s *historyBuilder) judge() *Report {
	r := newReport(Options{}, "")
	s.judgeInto(r)
	return r
}

func (s *historyBuilder) judgeInto(r *Report) {
	s.evidence.events = slices.Values(s.events)
	s.evidence.judge(r)
}

// checkHistories calls judge for each history and compares the violated
// invariants with the expected ones.
func checkHistories(t *testing.T, cases map[string]historyCase) {
	t.Helper()
	for name, c := range cases {
		r := c.build().judge()
		if got := strings.Join(r.Broken(), " "); got != c.want {
			t.Errorf("%s: got violations of %q, want %q: %v", name, got, c.want, r.Violations)
		}
	}
}

// checkViolations checks that a report has one violation for each invariant in
// want, in the same order, and no others.
func checkViolations(t *testing.T, r *Report, want ...string) {
	t.Helper()
	var got []string
	for _, v := range r.Violations {
		got = append(got, v.Invariant)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got violations of %q, want %q: %v", got, want, r.Violations)
	}
}
