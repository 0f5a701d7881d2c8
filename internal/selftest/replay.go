package selftest

import (
	"encoding/json"
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
