package main

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// plan describes an installation and what happens in its simulation. The worker processes are divided evenly among the servers.
//
// The model leaves out: locks; lanes, limits, dependencies and retries of tasks, and the slower cycles that they need; autovacuum and
// checkpoints; the limit of connections; the processor time of heartbeats, of checks for expired leases, and of enqueues; the cost of
// switches between processes and of the caches that they share; networks and disks whose delays vary. A processor does one job until the
// job is done, and a computer does its jobs in the order in which they came.
type plan struct {
	costs
	servers, workers, slots int
	nothingAhead            bool          // whether the workers claim no tasks ahead of their slots
	processors              int           // processors of each server, and of each host
	perHost                 int           // worker processes of a host; 0 if one computer runs all servers and workers
	roundTrip               time.Duration // round trip time of the network between a worker and its server
	duration                time.Duration // mean time of a task in addition to its processor time (exponential distribution)
	backlog                 int           // tasks that are due on each server at the beginning
	rate                    float64       // tasks per second that become due on each server, at random times (a Poisson process)
	until                   time.Duration // time at which the simulation ends; 0 means that it ends when no event is left
	killed                  int           // worker processes of each server that are killed at the time killedAt
	killedAt                time.Duration
	lease                   time.Duration // length of a lease, from the last heartbeat on; after that, other workers take the tasks
	beat, check             time.Duration // time between two heartbeats, and between two checks for expired leases
	seed                    uint64
}

// costs are parameters of the model. The program in calibrate.go chooses them so that the model fits the measurements. A message is a
// transaction in which a worker ends or claims tasks. A claim is a transaction that finds no task to claim. A notice is the delivery of a
// notification to one process.
type costs struct {
	serverMessage, serverClaim, serverNotice time.Duration // processor time of the server for a message, a claim and a notice
	workerMessage, workerClaim, workerNotice time.Duration // processor time of the worker for a message, a claim and a notice
	serverTask, workerTask                   time.Duration // processor time of each task; half of serverTask is for its claim
	commit                                   time.Duration // time in which a commit waits for the disk and uses no processor
}

// The workers of the model follow these rules. They imitate the rules of real workers in runner/internal/engine and db/internal/postgres.
const (
	collectFor  = time.Millisecond      // a cycle waits at most this long for more tasks that end
	aheadTasks  = 100                   // greatest number of claimed tasks that wait for a slot
	aheadShort  = 10 * time.Millisecond // a worker claims ahead only if the mean time of a task is at most this
	notifyPause = 5 * time.Millisecond  // least time between two notifications of a process
)

// outcome is the result of a simulation.
type outcome struct {
	tasks      int             // tasks that have ended
	messages   int             // messages from workers to the servers; each is one transaction
	took       time.Duration   // length of the run: plan.until or, if that is zero, the time until the last end of a task was written
	serverTime time.Duration   // processor time of all servers
	workerTime time.Duration   // processor time of all workers
	waits      []time.Duration // for each started task, except those of killed workers: time from its due time to its start
	takeovers  []time.Duration // for each task of a killed worker: time from the kill to the next start of the task
}

// simulation is the state of a simulation while it runs.
type simulation struct {
	plan
	outcome
	now    time.Duration
	order  int
	events events
	random *rand.Rand
	all    []*server
}

// task is a task that is due. The field "due" is the time at which it became due. If the worker of the task was killed, the field "lost" is
// the time of the kill; otherwise it is 0.
type task struct{ due, lost time.Duration }

// server is a PostgreSQL server.
type server struct {
	cpu      *computer
	pending  fifo[task]
	hosts    []*host
	programs sender // stands for all programs that enqueue tasks on this server
}

// host is a host with worker processes of one server.
type host struct {
	cpu     *computer
	workers []*worker
	waits   bool // whether a notification for this host is waiting for a processor of the server
	wakes   bool // whether this notification will wake the workers of the host
}

// sender is a process that sends notifications of its commits.
type sender struct {
	sim     *simulation
	server  *server
	wakes   bool // whether notifications of this process wake workers: true for a program that enqueues, false for a worker
	paused  bool // true from the start of a notification to the end of the pause after it; meanwhile the process sends no other one
	changed bool // whether there was a commit since the start of the last notification
}

// worker is a worker process.
type worker struct {
	sender
	cpu        *computer
	running    int        // tasks that have a slot
	computing  int        // running tasks that use a processor or wait for one
	ahead      fifo[task] // claimed tasks that wait for a slot
	ended      int        // tasks whose ends the worker has not sent yet
	held       int        // tasks that belong to the worker in the tables of the server
	inCycle    bool       // whether the worker has sent its ends or a claim to the server and waits for the answers
	collecting bool       // whether the worker waits up to collectFor before the next cycle
	more       bool       // whether the next claim may find tasks: at first, after a notification, or if the last claim took its maximum
	dead       bool
}

// The method "after" adds an event: when the duration d has passed, the simulation calls the function "do".
func (s *simulation) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{s.now + d, s.order, do})
}

// run runs a simulation.
func (p plan) run() outcome {
	s := &simulation{plan: p, random: rand.New(rand.NewPCG(p.seed, 0))}
	s.build()
	if p.killed > 0 {
		s.after(p.killedAt, s.kill)
	}
	for len(s.events) > 0 && (p.until == 0 || s.events[0].at <= p.until) {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	if p.until > 0 {
		s.took = p.until
	}
	return s.outcome
}

// build creates the computers, servers and workers, and starts them.
func (s *simulation) build() {
	shared := &computer{sim: s, idle: s.processors}
	for i := range s.servers {
		server := &server{cpu: shared}
		if s.perHost > 0 {
			server.cpu = &computer{sim: s, idle: s.processors}
		}
		server.programs = sender{sim: s, server: server, wakes: true}
		for range s.backlog {
			server.pending.add(task{})
		}
		for n := range s.workers/s.servers + min(1, max(0, s.workers%s.servers-i)) {
			if n == 0 || s.perHost > 0 && n%s.perHost == 0 {
				cpu := shared
				if s.perHost > 0 {
					cpu = &computer{sim: s, idle: s.processors}
				}
				server.hosts = append(server.hosts, &host{cpu: cpu})
			}
			h := server.hosts[len(server.hosts)-1]
			w := &worker{sender: sender{sim: s, server: server}, cpu: h.cpu, more: true}
			h.workers = append(h.workers, w)
			s.after(0, w.cycle)
		}
		s.all = append(s.all, server)
		if s.rate > 0 {
			s.after(s.interval(), func() { s.arrive(server) })
		}
	}
}

// interval returns the time until the next task of a server becomes due.
func (s *simulation) interval() time.Duration {
	return time.Duration(s.random.ExpFloat64() / s.rate * float64(time.Second))
}

// arrive adds a task that is due now, and prepares the arrival of the next task.
func (s *simulation) arrive(server *server) {
	server.pending.add(task{due: s.now})
	server.programs.notify()
	s.after(s.interval(), func() { s.arrive(server) })
}

// notify sends a notification. If the pause after the last notification is not over, it sends the notification at the end of that pause.
func (n *sender) notify() {
	if n.changed = true; n.paused {
		return
	}
	n.changed, n.paused = false, true
	n.sim.messages++
	n.server.cpu.do(&n.sim.serverTime, func() time.Duration { return n.sim.serverNotice }, func() {
		for _, h := range n.server.hosts {
			n.deliver(h)
		}
		n.sim.after(notifyPause, func() {
			if n.paused = false; n.changed {
				n.notify()
			}
		})
	})
}

// deliver delivers a notification to all workers of a host. Notifications that wait for the server are delivered together.
func (n *sender) deliver(h *host) {
	h.wakes = h.wakes || n.wakes
	if h.waits {
		return
	}
	h.waits = true
	s, listeners, wakes := n.sim, time.Duration(len(h.workers)), false
	s.messages += len(h.workers)
	n.server.cpu.do(&s.serverTime, func() time.Duration {
		wakes, h.wakes, h.waits = h.wakes, false, false
		return s.serverNotice * listeners
	}, func() {
		s.after(s.roundTrip/2, func() {
			h.cpu.do(&s.workerTime, func() time.Duration { return s.workerNotice * listeners }, func() {
				for _, w := range h.workers {
					if wakes {
						w.more = true
						w.maybeCycle()
					}
				}
			})
		})
	})
}

// maybeCycle begins a cycle if the worker has ends to send, or if it has a free slot and a claim may find tasks. If tasks have ended while
// other tasks compute, the cycle begins only after the time collectFor, because more tasks may end by then.
func (w *worker) maybeCycle() {
	if w.inCycle || w.ended == 0 && (!w.more || w.running >= w.sim.slots) {
		return
	}
	if w.ended == 0 || w.computing == 0 {
		w.cycle()
	} else if !w.collecting {
		w.collecting = true
		w.sim.after(collectFor, func() {
			if w.collecting {
				w.cycle()
			}
		})
	}
}

// cycle sends the ends of tasks and a claim, as two messages at the same time. The next cycle can begin when both answers are there.
func (w *worker) cycle() {
	w.collecting = false
	if w.inCycle || w.dead {
		return
	}
	ends, most := w.ended, w.claimable()
	var claimed []task
	open := min(ends, 1) + min(most, 1)
	done := func() {
		if open--; open == 0 {
			w.receive(claimed, most)
		}
	}
	w.inCycle, w.more, w.ended = open > 0, false, 0
	if ends > 0 {
		w.send(func() int { return ends }, func() {
			w.held -= ends
			w.sim.tasks += ends
			w.sim.took = w.sim.now
		}, done)
	}
	if most > 0 {
		w.send(func() int {
			for len(claimed) < most && w.server.pending.len() > 0 {
				claimed = append(claimed, w.server.pending.next())
			}
			w.held += len(claimed)
			return len(claimed)
		}, func() {}, done)
	}
}

// claimable returns how many tasks the next cycle may claim.
func (w *worker) claimable() int {
	ahead := 0
	if w.ended >= w.sim.slots && !w.sim.nothingAhead && w.sim.duration <= aheadShort {
		ahead = min(2*w.ended, aheadTasks)
	}
	return w.sim.slots - w.running + max(ahead-w.ahead.len(), 0)
}

// send sends a message of the worker to the server. When the server begins with the message, it calls the function "begin", which returns
// the number of tasks in the message. When the server has written the message to the disk, it calls the function "commit". When the worker
// has received the answer, it calls the function "end".
func (w *worker) send(begin func() int, commit, end func()) {
	s, n := w.sim, 0
	s.messages++
	answer := func() {
		s.after(s.roundTrip/2, func() {
			w.cpu.do(&s.workerTime, func() time.Duration {
				if n == 0 {
					return s.workerClaim
				}
				return s.workerMessage
			}, end)
		})
	}
	s.after(s.roundTrip/2, func() {
		w.server.cpu.do(&s.serverTime, func() time.Duration {
			if n = begin(); n == 0 {
				return s.serverClaim
			}
			return s.serverMessage + s.serverTask*time.Duration(n)/2
		}, func() {
			if n == 0 { // the claim has found no task, so the server writes nothing
				answer()
				return
			}
			s.after(s.commit, func() { commit(); w.notify(); answer() })
		})
	})
}

// receive receives the answers of a cycle. The parameter "most" is the number of tasks that the cycle could claim. The claimed tasks begin
// or wait for a slot.
func (w *worker) receive(claimed []task, most int) {
	if w.inCycle = false; w.dead {
		return
	}
	w.more = w.more || most > 0 && len(claimed) == most
	for _, t := range claimed {
		w.ahead.add(t)
	}
	for w.running < w.sim.slots && w.ahead.len() > 0 {
		w.begin()
	}
	w.maybeCycle()
}

// begin begins the next task that waits for a slot.
func (w *worker) begin() {
	s, t := w.sim, w.ahead.next()
	if t.lost > 0 {
		s.takeovers = append(s.takeovers, s.now-t.lost)
	} else {
		s.waits = append(s.waits, s.now-t.due)
	}
	w.running++
	w.computing++
	w.cpu.do(&s.workerTime, func() time.Duration { return s.workerTask }, func() {
		w.computing--
		s.after(time.Duration(s.random.ExpFloat64()*float64(s.duration)), w.end)
	})
}

// end ends a task. If a claimed task waits for a slot, it starts at once.
func (w *worker) end() {
	if w.dead {
		return
	}
	w.running--
	w.ended++
	if w.ahead.len() > 0 {
		w.begin()
	}
	w.maybeCycle()
}

// kill kills the first workers of each server. The tasks of these workers become due again when another worker finds that their lease has
// expired.
func (s *simulation) kill() {
	for _, server := range s.all {
		var list []*worker
		for _, h := range server.hosts {
			list = append(list, h.workers...)
		}
		for _, w := range list[:s.killed] {
			w.dead = true
			since := time.Duration(s.random.Float64() * float64(s.beat)) // time from the last heartbeat to the kill
			late := time.Duration(s.random.Float64() * float64(s.check)) // time from the end of the lease to the next check of leases
			s.after(max(s.lease-since, 0)+late, func() {
				for range w.held {
					server.pending.add(task{lost: s.killedAt})
				}
				w.held = 0
				server.programs.notify()
			})
		}
	}
}
