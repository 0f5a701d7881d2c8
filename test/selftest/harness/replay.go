package harness

import (
	"encoding/json"
	"iter"
	"slices"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit/transitions"
)

// replay goes through the history in commit order and checks each event against
// the invariants. Only the checks of lease lengths depend on time.
type replay struct {
	tasks   map[int64]*taskHistory
	workers map[string]*workerHistory
	keys    map[string]int64 // for each unique key, the unfinished task that owns it
	pending map[int64]*taskHistory
	blocked map[int64]*taskHistory
	ended   []endedBelow // on a server: which transactions had ended at the time of each recent event
	// on a server: the latest claims; concurrent finds those that ran beside a
	// given one
	serverClaims []serverClaim
	lanes        map[string]*taskHistory // task that holds each lane
	heartbeats   []event                 // latest renewals of leases; the next event "beat" names the worker that made them
	claimRow     []*taskHistory          // last claims that one worker made from one queue, directly one after the other
	violation    func(string, int64, string, ...any)
	clockDrift   int64 // ms by which the wall clock was changed during the run

	claims, losses int
	started        []int64 // times of the claims, in ms of the wall clock
	ownKills       int     // number of attempts whose command was killed, but not by runner (reason "signal"); must be 0
}

// taskHistory is the state of a task at one point of the history.
type taskHistory struct {
	id                     int64
	label, queue, job, key string
	lane                   string
	after, afterAny        []int64
	waits                  bool // whether the task waits for something besides its lane, such as a dependency
	priority               int
	state                  jobs.State
	setBy                  int64 // number of the transaction that set the state; 0 in a SQLite file
	generation             int64
	worker, reason         string
	attempt, losses        int
	maxAttempts, maxLosses int
	claims                 []*claim
	deleted                bool
	// whether the task has ever completed, and whether it has ever failed or
	// been cancelled; a retry doesn't change these fields
	completed, failed bool
}

// claim is one claim of a task.
type claim struct {
	generation   int64
	worker       string
	claimedAt    int64 // when the worker claimed the task; all times of this struct are in ms of the wall clock
	began        int64 // time at which the transaction of the claim began; 0 in a SQLite file
	leaseEnd     int64 // current end of the lease
	leaseWritten int64 // time of the last write of leaseEnd
	revoked      bool  // whether the claim is revoked; then the database rejects all writes of the worker about this claim
	endedAt      int64 // when the claim ended; 0 while the task runs
	endedBy      endedBy
	recorded     bool // whether the database has recorded the end of the attempt
	abandoned    bool // whether the worker stopped without waiting for the function
}

// endedBy is how a claim ended.
type endedBy string

const (
	endedByOwner    endedBy = "owner" // the worker recorded an outcome
	endedByGuardian endedBy = "guard" // the worker recorded a loss itself, because its guardian died
	endedByDeath    endedBy = "death" // another worker took the task of a dead worker
	endedByLease    endedBy = "lease" // another worker took the task of a hung worker
)

// workerHistory is the state of a worker at one point of the history.
type workerHistory struct {
	id          string
	pid         int
	jobs        []string
	leaseLength int64
	running     map[int64]*taskHistory
	joinedAt    int64 // time at which the worker was added to the database
	leftAt      int64 // time at which the database recorded the end of the worker; 0 before that
	leftItself  bool  // whether the worker itself recorded its end; if not, another worker did
}

func newReplay(found func(string, int64, string, ...any)) *replay {
	return &replay{tasks: map[int64]*taskHistory{}, workers: map[string]*workerHistory{}, keys: map[string]int64{},
		pending: map[int64]*taskHistory{}, blocked: map[int64]*taskHistory{}, lanes: map[string]*taskHistory{}, violation: found}
}

func (t *taskHistory) suspect() bool { return t.losses >= 1 && t.losses >= t.maxLosses-1 }

func (t *taskHistory) lastClaim() *claim {
	if len(t.claims) == 0 {
		return nil
	}
	return t.claims[len(t.claims)-1]
}

// lookahead is how many later events the replay keeps in memory, more than one
// transaction makes. All events of a long run would take too much memory.
const lookahead = 2000

func (r *replay) all(events iter.Seq[event]) {
	var ahead []event
	for e := range events {
		if ahead = append(ahead, e); len(ahead) > lookahead {
			r.event(ahead)
			ahead = ahead[1:]
		}
	}

	for i := range ahead {
		r.event(ahead[i:])
	}

	r.checkOrder(nil)
}

// claims reports whether the event is a claim.
func (e *event) claims() bool {
	return e.op == "update" && e.state == string(jobs.Running) && e.oldState != e.state
}

// event replays the first of the events ahead.
func (r *replay) event(ahead []event) {
	e, rest := ahead[0], ahead[1:]
	if len(r.claimRow) > 0 && !(e.claims() && r.claimRow[0].worker == e.worker && r.claimRow[0].queue == r.task(e.id).queue) {
		r.checkOrder(ahead)
	}

	r.noteTransaction(e)
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
	t.label, t.queue, t.job, t.key, t.lane = e.label, e.queue, e.job, e.key, e.lane
	t.priority, t.maxLosses, t.maxAttempts = e.priority, e.maxLosses, e.maxAttempts
	// The state is known already if an update came before the insert: a trigger
	// of runner may update the new task before the history trigger records the
	// insert.
	if t.waits = e.waits; t.state == "" {
		r.setState(t, jobs.State(e.state))
		t.setBy = e.xid
		t.generation, t.attempt, t.losses, t.reason = e.generation, e.attempt, e.losses, e.reason
	}
}

// depends records a dependency. A dependency may occur twice: if plain SQL
// inserted the task, the first worker that sees the task writes the
// dependencies again.
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

// setState changes the state of a task. It also updates the maps of the pending
// and blocked tasks, the unique keys and the lanes.
func (r *replay) setState(t *taskHistory, to jobs.State) {
	if t.key != "" {
		other, taken := r.keys[t.key]
		switch {
		case !to.Finished() && taken && other != t.id:
			r.violation("I12", t.id, "is unfinished and has the unique key of task %d, which is unfinished too", other)
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

// checkLane checks that at most one task holds a lane, and that the first
// waiting task gets the lane next.
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
		r.violation("I12", t.id, "is %s and holds lane %s, which task %d holds", to, t.lane, holder.id)
	}

	r.lanes[t.lane] = t
	if t.state != jobs.Blocked {
		return
	}

	for _, other := range r.blocked {
		if other != t && other.lane == t.lane && !other.waits && other.precedes(t) {
			r.violation("I12", t.id, "got lane %s with priority %d while task %d waited with priority %d",
				t.lane, t.priority, other.id, other.priority)
		}
	}
}

func (r *replay) update(e event, rest []event) {
	t := r.task(e.id)
	from, to := jobs.State(e.oldState), jobs.State(e.state)
	if t.state != "" && (t.state != from || t.generation != e.oldGeneration) {
		r.violation("I4", e.id, "was %s in generation %d, but the next change is from %s in generation %d",
			t.state, t.generation, from, e.oldGeneration)
	}
	if e.generation < e.oldGeneration || (from != to || e.oldWorker != e.worker) && e.generation != e.oldGeneration+1 {
		r.violation("I4", e.id, "changed from %s of worker %q, generation %d, to %s of worker %q, generation %d",
			from, e.oldWorker, e.oldGeneration, to, e.worker, e.generation)
	}

	ran := t.lastClaim()
	revoked := from == jobs.Running && to == jobs.Running && e.worker == e.oldWorker && e.generation == e.oldGeneration+1 && e.lease == 0
	switch {
	case revoked:
		r.revoke(ran, e)
	case from == jobs.Running && to == jobs.Running && (e.worker != e.oldWorker || e.generation != e.oldGeneration):
		r.violation("I3", e.id, "taken from worker %s by worker %s while it was running", e.oldWorker, e.worker)
	case from != to && !transitions.Allowed(from, to):
		r.violation("I8", e.id, "changed from %s to %s, which is not allowed", from, to)
	}

	t.generation, t.attempt, t.losses, t.reason = e.generation, e.attempt, e.losses, e.reason
	t.maxAttempts, t.maxLosses = e.maxAttempts, e.maxLosses
	switch {
	case to == jobs.Running && from != to:
		r.claimed(t, e)
	case to == jobs.Running:
		if !revoked && e.lease != e.oldLease && ran != nil {
			r.renew(ran, e)
		}
	case from == jobs.Running:
		r.end(t, ran, e, rest)
	case from.Finished() && from != to:
		if e.attempt != 0 || e.losses != 0 {
			r.violation("I5", e.id, "retried with attempt %d and %d losses, want 0 and 0", e.attempt, e.losses)
		}
	case e.attempt != e.oldAttempt || e.losses != e.oldLosses:
		r.violation("I5", e.id, "changed from attempt %d, %d losses to attempt %d, %d losses without a claim",
			e.oldAttempt, e.oldLosses, e.attempt, e.losses)
	}

	t.worker, t.waits = e.worker, e.waits
	if t.state != to {
		r.setState(t, to)
		t.setBy = e.xid
	}
}
