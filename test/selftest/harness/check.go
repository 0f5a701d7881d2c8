package harness

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs/command"
)

// evidence is what a run of the selftest has recorded and measured, for judge.
type evidence struct {
	events    iter.Seq[event]
	notes     []note
	lifetimes []lifetime
	lastSeen  map[attemptProcess]int64 // when each process of an attempt was last seen alive, in µs of the monotonic clock
	offset    int64                    // wall clock minus monotonic clock, in ms
	drift     int64                    // ms by which the wall clock was changed during the run
	locked    []span                   // periods in which an injected fault kept all processes from writing, in ms of the wall clock

	lifetimesOf  map[int][]lifetime // lifetimes of the processes, by pid
	kills        map[int][]int64    // times just before a worker was killed, by the pid of the worker
	guardiansHit map[int]bool       // pids of workers whose guardians were killed or stopped
	stoppedSpans map[int][]span     // periods in which a worker or one of its guardians was stopped, by the pid of the worker
}

// span is a period of time.
type span struct{ from, to int64 }

const staleLockAge = 3 * time.Minute // the lock file of an ended worker is a violation if it is older than this

const maxPerInvariant = 20 // maximum number of reported violations of one invariant

func (r *run) check(ctx context.Context) error {
	var e evidence
	var err, broken error
	e.events = func(yield func(event) bool) { broken = r.db.events(ctx, yield) }
	if e.notes, err = readNotes(r.workspace); err != nil {
		return err
	}

	e.lifetimes, e.lastSeen, e.offset = r.processes.lifetimes, r.watcher.lastSeen, wallOffset()
	e.drift = e.offset - r.offset
	workers := e.judge(r.report)
	if broken != nil {
		return broken
	}

	problems, err := r.db.integrityProblems(ctx)
	if err != nil {
		return err
	}

	for _, p := range problems {
		r.report.add("I11", 0, "%s", p)
	}

	r.checkLeftovers(&e, workers)
	r.nemesis.mu.Lock()
	defer r.nemesis.mu.Unlock()

	for _, v := range r.nemesis.violations {
		r.report.add(v.Invariant, v.Task, "%s", v.Text)
	}

	r.report.KillsStops = r.nemesis.killsAndStops()
	return nil
}

// add adds a violation.
func (r *Report) add(invariant string, task int64, format string, args ...any) {
	n := 0
	for _, v := range r.Violations {
		if v.Invariant == invariant {
			n++
		}
	}

	if n < maxPerInvariant {
		r.Violations = append(r.Violations, Violation{invariant, task, fmt.Sprintf(format, args...)})
	}
}

// checkLeftovers checks that no process and no lock file has outlived the
// workers.
func (r *run) checkLeftovers(e *evidence, workers map[string]*workerHistory) {
	for _, pid := range processesOf(r.dir) {
		m := e.attemptProcessOf(pid)
		_, name := parentOf(pid)
		r.report.add("I10", m.task, "process %d (%s %s) of generation %d outlived all workers", pid, name, m.traits, m.generation)
		_ = kill(pid)
	}

	for _, pid := range allPIDs() {
		if _, name := parentOf(pid); name == "guardian" {
			if line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); len(line) > 0 {
				words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
				if workers[words[len(words)-1]] != nil {
					r.report.add("I10", 0, "guardian %d outlived its worker %s", pid, words[len(words)-1])
					_ = kill(pid)
				}
			}
		}
	}

	locks, _ := filepath.Glob(r.databaseAddress() + ".d/*.lock")
	ofHosts, _ := filepath.Glob(r.dir + "/host*/runner/*/*.lock")
	locks = append(locks, ofHosts...)
	// Report only old lock files: if a worker is killed while it cleans up, its
	// lock file stays for about a minute.
	for _, lock := range locks {
		info, err := os.Stat(lock)
		id := strings.TrimSuffix(filepath.Base(lock), ".lock")
		if workers[id] != nil && err == nil && time.Since(info.ModTime()) > staleLockAge {
			r.report.add("I10", 0, "the lock file of worker %s was left, which has ended", id)
		}
	}
}

// judge checks the history of the database and the notes of the processes
// against the invariants. It returns the workers of the run.
func (e *evidence) judge(report *Report) map[string]*workerHistory {
	r := newReplay(report.add)
	r.clockDrift = abs(e.drift)
	r.all(e.events)
	e.index()
	report.Claims, report.Losses, report.Tasks = r.claims, r.losses, len(r.tasks)
	e.checkEnqueues(r, report)
	e.checkEnds(r, report)
	report.Figures.OwnKills = r.ownKills
	e.checkExecutions(r, report)
	e.checkDeaths(r, report)
	e.checkSurvivors(r, report)
	e.measureDelays(r, report)
	e.measureResumes(r, report)
	for _, l := range e.lifetimes {
		if l.failure != "" && !(l.noGuardians && e.guardiansHit[l.pid]) {
			report.add("I10", 0, "%s", l.failure)
		}
	}

	return r.workers
}

// wall converts a time in the notes to the clock of the history, which is the
// wall clock in ms.
func (e *evidence) wall(at int64) int64 { return at/1000 + e.offset }

// checkEnqueues checks rule I1 of docs/reliability.md: it compares the
// acknowledged enqueues with the tasks that exist.
func (e *evidence) checkEnqueues(r *replay, report *Report) {
	tried := map[string]bool{tickLabel: true}
	var opens []time.Duration
	for _, n := range e.notes {
		switch n.op {
		case opTry:
			tried[n.text] = true
		case opAck:
			report.Enqueued++
			if t := r.tasks[n.task]; t == nil || t.label == "" {
				report.Figures.Lost++
				report.add("I1", n.task, "acknowledged for label %s, but missing", n.text)
			} else if t.label != n.text && t.key == "" {
				report.add("I1", n.task, "acknowledged for label %s, but has label %s", n.text, t.label)
			}
		case opBusy:
			report.Figures.Busy++
		case opOpen:
			us, _ := strconv.Atoi(n.text)
			opens = append(opens, time.Duration(us)*time.Microsecond)
		}
	}

	for id, t := range r.tasks {
		if !tried[t.label] {
			report.add("I1", id, "exists, but no client enqueued label %q", t.label)
		}
	}

	// Each process notes how long it took to open the database. Use only the
	// first notes: those of the processes that killDuringCommits started. Later
	// opens are slower, because of the load of the run.
	if k := report.CommitKills; len(opens) >= k {
		opens = opens[:k]
	}

	report.Figures.OpenP50, report.Figures.OpenMax = seconds(percentile(opens, 0.5)), seconds(percentile(opens, 1))
}

// checkEnds checks the rules I1 and I5 of docs/reliability.md: each task ended
// in a way that its kind allows.
func (e *evidence) checkEnds(r *replay, report *Report) {
	cancelled := map[int64]bool{}
	for _, n := range e.notes {
		if n.op == opCancel {
			cancelled[n.task] = true
		}
	}

	for id, t := range r.tasks {
		broken := slices.ContainsFunc(t.after, func(id int64) bool { return r.task(id).failed })
		switch k := kindOf(t.label); {
		case !t.state.Finished():
			report.add("I1", id, "kind %s is %s after the drain, with %d losses, attempt %d", k, t.state, t.losses, t.attempt)
		case !validEnd(k, t, cancelled[id], broken):
			report.add("I5", id, "kind %s ended as %s, reason %q, with %d losses, attempt %d", k, t.state, t.reason, t.losses, t.attempt)
		}
	}
}

// checkExecutions checks rule I9 of docs/reliability.md. It reads the notes
// that commands and functions write while they run. Each execution needs a
// claim, runs within the lease of this claim, and doesn't overlap with another
// execution of the task.
func (e *evidence) checkExecutions(r *replay, report *Report) {
	type key struct{ task, generation int64 }
	started, times := map[key]int{}, map[int64]int{}
	for _, n := range e.notes {
		t := r.tasks[n.task]
		switch n.op {
		case opStart:
			k := key{n.task, n.generation}
			started[k]++
			times[n.task]++
			switch {
			case t == nil || !slices.ContainsFunc(t.claims, func(c *claim) bool { return c.generation == n.generation }):
				report.add("I9", n.task, "executed as generation %d, which no worker claimed", n.generation)
			case started[k] > 1:
				report.add("I9", n.task, "executed twice as generation %d", n.generation)
			case kindOf(t.label) == atMostOnce && times[n.task] > 1:
				report.add("I9", n.task, "may run at most once, but was started again as generation %d", n.generation)
			}
		case opOverlap:
			mayGoOn := func(c *claim) bool { return c.generation < n.generation && (c.endedBy == endedByLease || c.abandoned) }
			if strings.HasPrefix(n.text, "function") && t != nil && slices.ContainsFunc(t.claims, mayGoOn) {
				report.Figures.Functions++
			} else {
				report.Figures.Overlaps++
				report.add("I9", n.task, "executed as generation %d while another execution was alive (%s)", n.generation, n.text)
			}
		case opAlive:
			if t == nil || t.job != command.Job {
				continue
			}
			for _, c := range t.claims {
				late := e.wall(n.at) - c.leaseEnd - e.lockedWithin(c.leaseEnd, e.wall(n.at))
				w := r.workers[c.worker]
				if c.generation == n.generation && w != nil && !e.guardiansHit[w.pid] && late > Lease.Milliseconds()/4+abs(e.drift) {
					report.add("I9", n.task, "generation %d was alive %d ms after its lease had ended", n.generation, late)
				}
			}
		}
	}
}

// measureResumes measures the time from the restart of the server to the next
// claim.
func (e *evidence) measureResumes(r *replay, report *Report) {
	f := &report.Figures
	for _, n := range e.notes {
		if n.op != opUp {
			continue
		}
		at := e.wall(n.at)
		i := slices.IndexFunc(r.started, func(started int64) bool { return started > at })
		if i < 0 {
			continue
		}
		f.Resumed++
		f.ResumeMax = max(f.ResumeMax, seconds(time.Duration(r.started[i]-at-e.lockedWithin(at, r.started[i]))*time.Millisecond))
	}
}

func abs(n int64) int64 { return max(n, -n) }

// wallOffset returns the wall clock minus the monotonic clock, in ms.
func wallOffset() int64 { return time.Now().UnixMilli() - monotonic()/1000 }
