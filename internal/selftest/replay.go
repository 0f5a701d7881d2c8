package selftest

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"example.com/runner/jobs"
)

// replay goes through history 1 in the order of its commits and holds each step against the rules. Nothing is sampled and nothing
// depends on timing, but the lengths of leases.
type replay struct {
	tasks      map[int64]*taskHistory
	workers    map[string]*workerHistory
	keys       map[string]int64 // of unfinished tasks
	pending    map[int64]*taskHistory
	blocked    map[int64]*taskHistory
	lanes      map[string]*taskHistory // who has one
	heartbeats []event                 // leases that moved, and the beat they belong to is still to come
	claimRow   []*taskHistory          // claims in a row by one worker from one queue
	violation  func(string, int64, string, ...any)
	clockDrift int64 // ms by which the wall clock was moved during the run

	claims, losses int
	started        []int64 // when tasks were claimed, ms of the wall clock
	ownKills       int     // attempts that failed by a signal, which only runner sends
}

// replayed is a task at a point of its history.
type taskHistory struct {
	id                     int64
	label, queue, job, key string
	lane                   string
	after, afterAny        []int64
	waits                  bool // blocked by more than its lane
	priority               int
	state                  jobs.State
	generation             int64
	worker, reason         string
	attempt, losses        int
	maxAttempts, maxLosses int
	claims                 []*claim
	deleted                bool
	completed, failed      bool // it was, once at least; failed: or cancelled
}

// claimed is one claim of a task.
type claim struct {
	generation   int64
	worker       string
	claimedAt    int64 // ms of the wall clock, as all times here
	leaseEnd     int64 // the last one
	leaseWritten int64 // when that was written
	revoked      bool  // its worker can write nothing more about it
	endedAt      int64 // 0: not yet
	endedBy      endedBy
	recorded     bool // its attempt is
	abandoned    bool // its worker stopped, and did not wait for it
}

// path is how a claim ended.
type endedBy string

const (
	endedByOwner    endedBy = "owner" // itself, whatever the outcome
	endedByGuardian endedBy = "guard" // its worker says itself that it was lost: its guardian died
	endedByDeath    endedBy = "death" // taken from a worker that is dead
	endedByLease    endedBy = "lease" // taken from one that hangs
)

// joined is a worker.
type workerHistory struct {
	id          string
	pid         int
	jobs        []string
	leaseLength int64
	running     map[int64]*taskHistory
	joinedAt    int64 // when it joined
	leftAt      int64 // when; 0: not yet
	leftItself  bool  // it said so itself
}

// abandonedText is the error of an attempt that goes on while its worker stops: of a function, which nobody can kill.
const abandonedText = "its worker stopped, and it did not"

// lostText is the error of a task that was taken from its worker. When a worker itself reports a loss it has other words.
const lostText = "its worker was lost"

func newReplay(found func(string, int64, string, ...any)) *replay {
	return &replay{tasks: map[int64]*taskHistory{}, workers: map[string]*workerHistory{}, keys: map[string]int64{}, pending: map[int64]*taskHistory{},
		blocked: map[int64]*taskHistory{}, lanes: map[string]*taskHistory{}, violation: found}
}

func (t *taskHistory) suspect() bool { return t.losses >= 1 && t.losses >= t.maxLosses-1 }

func (t *taskHistory) lastClaim() *claim {
	if len(t.claims) == 0 {
		return nil
	}
	return t.claims[len(t.claims)-1]
}

// lookAhead is how many events the replay knows beyond the one that it is at: more than any transaction makes. All events of a long run would
// take too much memory.
const lookahead = 2000

func (r *replay) all(events iter.Seq[event]) {
	var ahead []event
	for e := range events {
		if ahead = append(ahead, e); len(ahead) > lookahead {
			r.event(ahead[0], ahead[1:])
			ahead = ahead[1:]
		}
	}
	for i, e := range ahead {
		r.event(e, ahead[i+1:])
	}
	r.checkOrder()
}

// step replays one event; rest are some that follow it.
func (r *replay) event(e event, rest []event) {
	isClaim := e.op == "update" && e.state == string(jobs.Running) && e.oldState != e.state
	if len(r.claimRow) > 0 && !(isClaim && r.claimRow[0].worker == e.worker && r.claimRow[0].queue == r.task(e.id).queue) {
		r.checkOrder()
	}
	switch e.op {
	case "insert":
		r.insert(e)
	case "update":
		r.update(e, rest)
	case "delete":
		if t := r.task(e.id); !t.state.Finished() {
			r.violation("I8", e.id, "deleted while %s", t.state)
		} else {
			t.deleted = true
		}
	case "depends":
		r.depends(e)
	case "attempt":
		r.attempt(e)
	case "join":
		w := &workerHistory{id: e.worker, pid: e.pid, joinedAt: e.at, leaseLength: e.lease, running: map[int64]*taskHistory{}}
		_ = json.Unmarshal([]byte(e.job), &w.jobs)
		r.workers[e.worker] = w
	case "leave":
		if w := r.workers[e.worker]; w != nil {
			w.leftAt, w.leftItself = e.at, e.pid == 1
		}
	case "beat":
		for _, b := range r.heartbeats {
			if b.worker != e.worker {
				r.violation("I7", b.id, "worker %s renewed the lease of worker %s", e.worker, b.worker)
			}
		}
	}
	if e.op != "update" || e.state != e.oldState {
		r.heartbeats = nil
	}
}

func (r *replay) task(id int64) *taskHistory {
	t := r.tasks[id]
	if t == nil {
		t = &taskHistory{id: id}
		r.tasks[id] = t
	}
	return t
}

func (r *replay) insert(e event) {
	t := r.task(e.id)
	t.label, t.queue, t.job, t.key, t.priority, t.maxLosses, t.maxAttempts = e.label, e.queue, e.job, e.key, e.priority, e.maxLosses, e.maxAttempts
	t.lane = e.lane
	if t.waits = e.waits; t.state == "" { // else one trigger was quicker than the other
		r.setState(t, jobs.State(e.state))
		t.generation, t.attempt, t.losses, t.reason = e.generation, e.attempt, e.losses, e.reason
	}
}

// depends notes that a task waits for another one. The rows of a task of plain SQL are written again when a worker first looks at it.
func (r *replay) depends(e event) {
	t := r.task(e.id)
	list := &t.after
	if e.attempt == 1 {
		list = &t.afterAny
	}
	if on := e.generation; !slices.Contains(*list, on) {
		*list = append(*list, on)
	}
}

// move changes the state, and what is known by state.
func (r *replay) setState(t *taskHistory, to jobs.State) {
	if t.key != "" {
		other, taken := r.keys[t.key]
		switch {
		case !to.Finished() && taken && other != t.id:
			r.violation("I12", t.id, "is unfinished and has the unique key of task %d, which is, too", other)
		case !to.Finished():
			r.keys[t.key] = t.id
		case other == t.id:
			delete(r.keys, t.key)
		}
	}
	r.checkLane(t, to)
	t.state = to
	t.completed = t.completed || to == jobs.Completed
	t.failed = t.failed || to == jobs.Failed || to == jobs.Cancelled
	for state, list := range map[jobs.State]map[int64]*taskHistory{jobs.Pending: r.pending, jobs.Blocked: r.blocked} {
		if to == state {
			list[t.id] = t
		} else {
			delete(list, t.id)
		}
	}
}

// inLane checks that one task at a time has a lane, and that the next one is the first of those that wait for it.
func (r *replay) checkLane(t *taskHistory, to jobs.State) {
	if t.lane == "" {
		return
	}
	holder := r.lanes[t.lane]
	switch has := to == jobs.Pending || to == jobs.Running || to == jobs.Retrying; {
	case !has:
		if holder == t {
			delete(r.lanes, t.lane)
		}
		return
	case holder != nil && holder != t:
		r.violation("I12", t.id, "is %s and has lane %s, which task %d has", to, t.lane, holder.id)
	}
	r.lanes[t.lane] = t
	if t.state != jobs.Blocked {
		return
	}
	for _, other := range r.blocked {
		if other != t && other.lane == t.lane && !other.waits && other.before(t) {
			r.violation("I12", t.id, "of priority %d has lane %s while task %d of priority %d waits for it", t.priority, t.lane, other.id, other.priority)
		}
	}
}

func (r *replay) update(e event, rest []event) {
	t := r.task(e.id)
	from, to := jobs.State(e.oldState), jobs.State(e.state)
	if t.state != "" && (t.state != from || t.generation != e.oldGeneration) {
		r.violation("I4", e.id, "was %s in generation %d, and then changed from %s in generation %d", t.state, t.generation, from, e.oldGeneration)
	}
	if e.generation < e.oldGeneration || (from != to || e.oldWorker != e.worker) && e.generation != e.oldGeneration+1 {
		r.violation("I4", e.id, "went from %s of %q, generation %d, to %s of %q, generation %d", from, e.oldWorker, e.oldGeneration, to, e.worker, e.generation)
	}
	ran := t.lastClaim()
	revoked := from == jobs.Running && to == jobs.Running && e.worker == e.oldWorker && e.generation == e.oldGeneration+1 && e.lease == 0
	switch {
	case revoked:
		r.revoke(ran, e)
	case from == jobs.Running && to == jobs.Running && (e.worker != e.oldWorker || e.generation != e.oldGeneration):
		r.violation("I3", e.id, "was taken from worker %s by %s while it ran", e.oldWorker, e.worker)
	case from != to && !jobs.CanMove(from, to):
		r.violation("I8", e.id, "went from %s to %s", from, to)
	}
	t.generation, t.attempt, t.losses, t.reason, t.maxAttempts, t.maxLosses = e.generation, e.attempt, e.losses, e.reason, e.maxAttempts, e.maxLosses
	switch {
	case to == jobs.Running && from != to:
		r.claimed(t, e)
	case to == jobs.Running:
		if !revoked && e.lease != e.oldLease && ran != nil {
			r.renew(t, ran, e)
		}
	case from == jobs.Running:
		r.end(t, ran, e, rest)
	case from.Finished() && from != to:
		if e.attempt != 0 || e.losses != 0 {
			r.violation("I5", e.id, "was run again with attempt %d and %d losses", e.attempt, e.losses)
		}
	case e.attempt != e.oldAttempt || e.losses != e.oldLosses:
		r.violation("I5", e.id, "went from attempt %d, %d losses to %d, %d while it waited", e.oldAttempt, e.oldLosses, e.attempt, e.losses)
	}
	t.worker, t.waits = e.worker, e.waits
	if t.state != to {
		r.setState(t, to)
	}
}

func (r *replay) claimed(t *taskHistory, e event) {
	r.claims++
	r.started = append(r.started, e.at)
	if e.attempt != e.oldAttempt+1 || e.losses != e.oldLosses || e.attempt > e.maxAttempts {
		r.violation("I5", e.id, "was claimed as attempt %d of %d with %d losses, after attempt %d with %d", e.attempt, e.maxAttempts, e.losses, e.oldAttempt, e.oldLosses)
	}
	c := &claim{generation: e.generation, worker: e.worker, claimedAt: e.at, leaseEnd: e.lease, leaseWritten: e.at}
	t.claims = append(t.claims, c)
	for _, id := range t.after {
		if p := r.task(id); !p.completed {
			r.violation("I12", e.id, "was claimed before task %d had completed, which is %s", id, p.state)
		}
	}
	for _, id := range t.afterAny {
		if p := r.task(id); !p.completed && !p.failed {
			r.violation("I12", e.id, "was claimed before task %d had finished, which is %s", id, p.state)
		}
	}
	w := r.workers[e.worker]
	if w == nil {
		r.violation("I3", e.id, "was claimed by worker %s, whom nobody knows", e.worker)
		return
	}
	r.checkLeaseLength(w, e)
	if !slices.Contains(w.jobs, t.job) {
		r.violation("I6", e.id, "of job %s was claimed by a worker that has %v", t.job, w.jobs)
	}
	for id, other := range w.running {
		if other.claims[len(other.claims)-1].revoked {
			continue // lost already: a worker that goes on claims again before the loss is recorded
		}
		if t.suspect() || other.suspect() {
			r.violation("I5", e.id, "with %d losses of %d runs beside task %d with %d of %d, and one of them may kill its worker", t.losses, t.maxLosses, id, other.losses, other.maxLosses)
		}
	}
	w.running[t.id] = t
	t.worker = e.worker
	r.claimRow = append(r.claimRow, t)
}

// order checks what was claimed in a row against what waited.
func (r *replay) checkOrder() {
	if len(r.claimRow) == 0 {
		return
	}
	worst, w := r.claimRow[0], r.workers[r.claimRow[0].worker]
	for _, t := range r.claimRow {
		if t.before(worst) {
			continue
		}
		worst = t
	}
	for _, p := range r.pending {
		if w != nil && p.queue == worst.queue && slices.Contains(w.jobs, p.job) && p.suspect() == worst.suspect() && p.before(worst) {
			r.violation("I6", worst.id, "of priority %d was claimed while task %d of priority %d waited in queue %s", worst.priority, p.id, p.priority, p.queue)
			break
		}
	}
	r.claimRow = nil
}

// before says whether a task must be claimed before another of its queue.
func (t *taskHistory) before(other *taskHistory) bool {
	return t.priority > other.priority || t.priority == other.priority && t.id < other.id
}

// bound checks that a lease is not longer than leases of its worker are.
func (r *replay) checkLeaseLength(w *workerHistory, e event) {
	if e.lease-e.at > w.leaseLength+50+r.clockDrift {
		r.violation("I7", e.id, "has a lease for %d ms, its worker's are %d ms long", e.lease-e.at, w.leaseLength)
	}
}

func (r *replay) renew(t *taskHistory, c *claim, e event) {
	c.leaseEnd, c.leaseWritten = e.lease, e.at
	if w := r.workers[e.worker]; w != nil {
		r.checkLeaseLength(w, e)
	}
	r.heartbeats = append(r.heartbeats, e)
}

// revoke is the first step of taking a claim away from a worker that hangs.
func (r *replay) revoke(c *claim, e event) {
	w := r.workers[e.worker]
	if c == nil || w == nil {
		r.violation("I3", e.id, "was revoked without having been claimed")
		return
	}
	if c.revoked = true; e.at-c.leaseWritten < w.leaseLength-5-r.clockDrift {
		r.violation("I3", e.id, "was revoked %d ms after the last heartbeat of worker %s; its leases are %d ms long", e.at-c.leaseWritten, w.id, w.leaseLength)
	}
}

func (r *replay) end(t *taskHistory, c *claim, e event, rest []event) {
	if w := r.workers[e.oldWorker]; w != nil {
		delete(w.running, t.id)
	}
	if c == nil {
		r.violation("I2", e.id, "ended without having been claimed")
		return
	}
	c.endedAt, c.endedBy = e.at, endedByOwner
	if generation := c.generation; generation != e.oldGeneration && !(c.revoked && generation+1 == e.oldGeneration) {
		r.violation("I2", e.id, "was claimed as generation %d and ended as %d", c.generation, e.oldGeneration)
	}
	if want := resultOf(c.generation); jobs.State(e.state) == jobs.Completed && e.result != want {
		r.violation("I2", e.id, "was completed as generation %d with the result %s", c.generation, e.result)
	}
	lost := e.losses != e.oldLosses || e.reason == string(jobs.ReasonLost)
	back := jobs.State(e.state) == jobs.Pending || jobs.State(e.state) == jobs.Scheduled || e.reason == string(jobs.ReasonShutdown)
	switch {
	case c.revoked && !lost:
		r.violation("I2", e.id, "was revoked as generation %d, and then ended as %s", c.generation, e.state)
	case lost:
		r.losses++
		r.endLost(t, c, e, rest)
	case back && e.attempt != e.oldAttempt-1:
		r.violation("I5", e.id, "was given back as %s with attempt %d after %d", e.state, e.attempt, e.oldAttempt)
	case !back && e.attempt != e.oldAttempt && jobs.State(e.state) != jobs.Cancelled:
		r.violation("I5", e.id, "ended as %s with attempt %d after %d", e.state, e.attempt, e.oldAttempt)
	}
}

// ownWord says whether a worker has reported a loss itself: its guardian died. The record of the attempt tells, since a task that somebody
// cancels meanwhile ends with that for a reason.
func reportedByWorker(e event, rest []event) bool {
	for _, next := range rest {
		if next.op == "attempt" && next.id == e.id && next.generation == e.oldGeneration {
			return next.err != lostText
		}
	}
	return false
}

func (r *replay) endLost(t *taskHistory, c *claim, e event, rest []event) {
	if e.losses != e.oldLosses+1 || e.attempt != e.oldAttempt-1 {
		r.violation("I5", e.id, "was lost: attempt %d, %d losses became %d, %d", e.oldAttempt, e.oldLosses, e.attempt, e.losses)
	}
	if state := jobs.State(e.state); state != jobs.Cancelled && (state == jobs.Failed) != (e.losses > e.maxLosses) {
		r.violation("I5", e.id, "is %s after %d losses of %d", state, e.losses, e.maxLosses)
	}
	w := r.workers[e.oldWorker]
	if w == nil {
		return
	}
	if reportedByWorker(e, rest) {
		c.endedBy = endedByGuardian
		return
	}
	c.endedBy = endedByLease
	if w.leftAt != 0 && w.leftAt <= e.at {
		c.endedBy = endedByDeath
	}
	for _, next := range rest { // one transaction takes all that a dead worker had, lets go who waited for that, and buries it
		if next.op == "leave" && next.worker == w.id && next.pid == 0 {
			c.endedBy = endedByDeath
		}
		mine := next.oldWorker == w.id && next.oldState == string(jobs.Running) && next.state != next.oldState
		if next.op != "attempt" && !(next.op == "update" && (mine || next.oldState == string(jobs.Blocked))) {
			break
		}
	}
	if c.endedBy == endedByLease && e.at-c.leaseWritten < w.leaseLength-5-r.clockDrift {
		r.violation("I3", e.id, "was taken from worker %s %d ms after its last heartbeat; its leases are %d ms long", w.id, e.at-c.leaseWritten, w.leaseLength)
	}
}

// attempt is the record of an accepted end.
func (r *replay) attempt(e event) {
	t := r.task(e.id)
	c := t.lastClaim()
	switch {
	case c == nil || c.generation != e.generation || c.worker != e.worker || c.endedAt == 0:
		current := "nobody"
		if c != nil {
			current = fmt.Sprintf("worker %s, generation %d", c.worker, c.generation)
		}
		r.violation("I2", e.id, "accepted an end by worker %s, generation %d; it belonged to %s", e.worker, e.generation, current)
	case c.recorded:
		r.violation("I2", e.id, "accepted a second end of generation %d", e.generation)
	default:
		c.recorded, c.abandoned = true, e.err == abandonedText
	}
	if e.reason == string(jobs.ReasonSignal) {
		r.ownKills++
		r.violation("I14", e.id, "generation %d ended as %s: %s, and nobody but runner sends signals to commands", e.generation, e.state, e.err)
	}
}
