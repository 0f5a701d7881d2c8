package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// evidence is everything that a run leaves to be judged by.
type evidence struct {
	events []event
	notes  []note
	lives  []life
	seen   map[tag]int64 // processes of commands, and when they were last seen alive; monotonic µs
	offset int64         // ms of the wall clock at monotonic 0
	drift  int64         // ms by which that changed
	held   []span        // when nobody could write because of the nemesis, ms of the wall clock
}

// span is a stretch of time.
type span struct{ from, to int64 }

const lockPatience = 3 * time.Minute // before a lock file counts as forgotten

const mostOfAKind = 20 // violations that are reported of one invariant

func (r *run) check(ctx context.Context) error {
	var e evidence
	var err error
	if e.events, err = r.history.events(ctx); err != nil {
		return err
	}
	if e.notes, err = readNotes(r.stage); err != nil {
		return err
	}
	e.lives, e.seen, e.offset = r.cast.history, r.watch.seen, wallOffset()
	e.drift = e.offset - r.offset
	e.judge(r.report)
	problems, err := r.history.sound(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		r.report.find("I11", 0, "%s", p)
	}
	r.leftovers(&e)
	r.report.KillsStops = r.nemesis.killsAndStops()
	return nil
}

// find adds a violation.
func (r *Report) find(invariant string, task int64, format string, args ...any) {
	n := 0
	for _, v := range r.Violations {
		if v.Invariant == invariant {
			n++
		}
	}
	if n < mostOfAKind {
		r.Violations = append(r.Violations, Violation{invariant, task, fmt.Sprintf(format, args...)})
	}
}

// leftovers looks for what must be gone when all workers have ended.
func (r *run) leftovers(e *evidence) {
	for _, t := range tagged(r.addresses()...) {
		r.report.find("I10", t.task, "process %d of generation %d outlived all workers", t.pid, t.generation)
		_ = kill(t.pid)
	}
	ids := map[string]bool{}
	for _, event := range e.events {
		if event.op == "join" {
			ids[event.worker] = true
		}
	}
	for _, pid := range processes() {
		if _, name := parentOf(pid); name == "guardian" {
			if line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); len(line) > 0 {
				words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
				if ids[words[len(words)-1]] {
					r.report.find("I10", 0, "guardian %d outlived its worker %s", pid, words[len(words)-1])
					_ = kill(pid)
				}
			}
		}
	}
	locks, _ := filepath.Glob(r.database() + ".d/*.lock")
	ofHosts, _ := filepath.Glob(r.dir + "/host*/runner/*/*.lock")
	locks = append(locks, ofHosts...)
	for _, lock := range locks { // a reaper may have been killed before it removed one: the next to start does, after a minute
		info, err := os.Stat(lock)
		if id := strings.TrimSuffix(filepath.Base(lock), ".lock"); ids[id] && err == nil && time.Since(info.ModTime()) > lockPatience {
			r.report.find("I10", 0, "lock file of worker %s, which has ended", id)
		}
	}
}

// judge holds both histories against the invariants.
func (e *evidence) judge(report *Report) {
	r := newReplay(report.find)
	r.slack = abs(e.drift)
	r.play(e.events)
	e.held = e.holds()
	report.Claims, report.Losses, report.Tasks = r.claims, r.losses, len(r.tasks)
	e.enqueues(r, report)
	e.ends(r, report)
	e.executions(r, report)
	e.deaths(r, report)
	e.processes(r, report)
	e.resumes(report)
	for _, l := range e.lives {
		if l.end != "" {
			report.find("I10", 0, "%s", l.end)
		}
	}
}

// wall is a time of notes as history 1 has it.
func (e *evidence) wall(at int64) int64 { return at/1000 + e.offset }

// enqueues compares what clients were told with what there is (I1).
func (e *evidence) enqueues(r *replay, report *Report) {
	tried := map[string]bool{tickToken: true}
	var opens []time.Duration
	for _, n := range e.notes {
		switch n.op {
		case opTry:
			tried[n.text] = true
		case opAck:
			report.Enqueued++
			if t := r.tasks[n.task]; t == nil || t.label == "" {
				report.Figures.Lost++
				report.find("I1", n.task, "was acknowledged for %s, and there is no such task", n.text)
			} else if t.label != n.text && t.key == "" {
				report.find("I1", n.task, "was acknowledged for %s and is of %s", n.text, t.label)
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
			report.find("I1", id, "exists, and nobody tried to enqueue %q", t.label)
		}
	}
	if k := report.CommitKills; len(opens) >= k { // those first: the others compete with the torture
		opens = opens[:k]
	}
	report.Figures.OpenP50, report.Figures.OpenMax = seconds(percentile(opens, 0.5)), seconds(percentile(opens, 1))
}

// ends checks that each task ended as its kind must (I1, I5).
func (e *evidence) ends(r *replay, report *Report) {
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
			report.find("I1", id, "of kind %s is %s after the drain, with %d losses, attempt %d", k, t.state, t.losses, t.attempt)
		case !mayEnd(k, t, cancelled[id], broken):
			report.find("I5", id, "of kind %s ended as %s, reason %q, with %d losses, attempt %d", k, t.state, t.reason, t.losses, t.attempt)
		}
	}
}

// executions looks at what commands and functions saw of each other (I9).
func (e *evidence) executions(r *replay, report *Report) {
	type key struct{ task, generation int64 }
	started, times := map[key]int{}, map[int64]int{}
	touched := e.touched()
	for _, n := range e.notes {
		t := r.tasks[n.task]
		switch n.op {
		case opStart:
			k := key{n.task, n.generation}
			started[k]++
			times[n.task]++
			switch {
			case t == nil || !slices.ContainsFunc(t.claims, func(c *claimed) bool { return c.generation == n.generation }):
				report.find("I9", n.task, "was executed as generation %d, which nobody claimed", n.generation)
			case started[k] > 1:
				report.find("I9", n.task, "was executed twice as generation %d", n.generation)
			case kindOf(t.label) == once && times[n.task] > 1:
				report.find("I9", n.task, "was to run at most once and was started again as generation %d", n.generation)
			}
		case opOverlap:
			excused := n.text == "function" && t != nil && slices.ContainsFunc(t.claims, func(c *claimed) bool { return c.generation < n.generation && c.by == byLease })
			if excused {
				report.Figures.Functions++
			} else {
				report.Figures.Overlaps++
				report.find("I9", n.task, "was executed as generation %d while another execution of it was alive (%s)", n.generation, n.text)
			}
		case opAlive:
			if t == nil || t.job != jobs.CommandJob {
				continue
			}
			for _, c := range t.claims {
				late := e.wall(n.at) - c.lease
				if w := r.workers[c.worker]; c.generation == n.generation && w != nil && !touched[w.pid] && late > Lease.Milliseconds()/4+abs(e.drift) {
					report.find("I9", n.task, "was alive as generation %d %d ms after its lease had ended", n.generation, late)
				}
			}
		}
	}
}

// touched are the workers whose guardian somebody killed or stopped.
func (e *evidence) touched() map[int]bool {
	list := map[int]bool{}
	for _, n := range e.notes {
		if n.op == opGuard {
			pid, _ := strconv.Atoi(n.text)
			list[pid] = true
		}
	}
	return list
}

// deathOf returns when somebody first set about to kill a worker, ms of the wall clock, and what is known of its process. Without a
// killer the time is that when its end was noticed.
func (e *evidence) deathOf(w *joined, kills map[int][]int64) (at int64, killed, known bool) {
	for _, l := range e.lives {
		born, buried := e.wall(l.born), e.wall(l.buried)
		if l.pid != w.pid || w.at < born-abs(e.drift) || w.at > buried+abs(e.drift) {
			continue
		}
		for _, at := range kills[w.pid] { // in order
			if at >= born && at <= buried {
				return at, true, true
			}
		}
		return buried, false, true
	}
	return 0, false, false
}

// kills are the times at which somebody set about to kill a process, ms of the wall clock.
func (e *evidence) kills() map[int][]int64 {
	list := map[int][]int64{}
	for _, n := range e.notes {
		if n.op == opKill {
			pid, _ := strconv.Atoi(n.text)
			list[pid] = append(list[pid], e.wall(n.at))
		}
	}
	return list
}

// deaths compares when workers were taken for dead with when they died (I3), and measures how long that took (I13).
func (e *evidence) deaths(r *replay, report *Report) {
	kills, touched := e.kills(), e.touched()
	const noticed = 1000 // ms within which the end of a child is
	var recovered, leases []time.Duration
	for _, w := range r.workers {
		if w.left == 0 || w.self {
			continue
		}
		death, killed, known := e.deathOf(w, kills)
		switch {
		case known && killed && w.left < death-5-abs(e.drift), known && !killed && w.left < death-noticed-abs(e.drift):
			report.find("I3", 0, "worker %s (pid %d) was taken for dead %d ms before it died", w.id, w.pid, death-w.left)
		case known && killed && !touched[w.pid] && slices.ContainsFunc(r.had(w), func(c *claimed) bool { return c.by == byDeath }):
			recovered = append(recovered, time.Duration(w.left-death-e.heldWithin(death, w.left))*time.Millisecond)
		}
	}
	for _, t := range r.tasks {
		for _, c := range t.claims {
			if c.by == byLease {
				leases = append(leases, time.Duration(c.ended-c.leaseAt-e.heldWithin(c.leaseAt, c.ended))*time.Millisecond)
			}
		}
	}
	f := &report.Figures
	f.Recoveries, f.RecoveryP99, f.RecoveryMax = len(recovered), seconds(percentile(recovered, 0.99)), seconds(percentile(recovered, 1))
	f.Leases, f.LeaseMax = len(leases), seconds(percentile(leases, 1))
}

// resumes measures how soon work goes on when the server is back.
func (e *evidence) resumes(report *Report) {
	f := &report.Figures
	for _, n := range e.notes {
		if n.op != opUp {
			continue
		}
		at := e.wall(n.at)
		i := slices.IndexFunc(e.events, func(event event) bool {
			return event.at > at && event.op == "update" && event.state == string(jobs.Running) && event.oldState != event.state
		})
		if i < 0 {
			continue
		}
		f.Resumed++
		f.ResumeMax = max(f.ResumeMax, seconds(time.Duration(e.events[i].at-at-e.heldWithin(at, e.events[i].at))*time.Millisecond))
	}
}

// had lists the claims of a worker.
func (r *replay) had(w *joined) (list []*claimed) {
	for _, t := range r.tasks {
		for _, c := range t.claims {
			if c.worker == w.id {
				list = append(list, c)
			}
		}
	}
	return list
}

// holds lists when the nemesis kept everybody from writing.
func (e *evidence) holds() (list []span) {
	depth, from := 0, int64(0)
	for _, n := range e.notes {
		switch n.op {
		case opHold:
			if depth++; depth == 1 {
				from = e.wall(n.at)
			}
		case opFree:
			if depth--; depth == 0 {
				list = append(list, span{from, e.wall(n.at)})
			}
		}
	}
	return list
}

func (e *evidence) heldWithin(from, to int64) (sum int64) {
	for _, s := range e.held {
		sum += max(0, min(to, s.to)-max(from, s.from))
	}
	return sum
}

// processes looks for processes of commands that lived on (I10).
func (e *evidence) processes(r *replay, report *Report) {
	kills, touched := e.kills(), e.touched()
	const late = 1000 // ms
	for p, last := range e.seen {
		w, t := r.workers[p.worker], r.tasks[p.task]
		if w == nil || t == nil {
			report.find("I10", p.task, "process %d belongs to worker %q, whom nobody knows", p.pid, p.worker)
			continue
		}
		if death, killed, _ := e.deathOf(w, kills); killed && !touched[w.pid] && e.wall(last) > death+late+abs(e.drift) {
			report.Figures.Orphans++
			report.find("I10", p.task, "process %d lived for %d ms after its worker was killed", p.pid, e.wall(last)-death)
		}
		for _, c := range t.claims {
			if c.generation == p.generation && c.ended != 0 && e.wall(last) > c.ended+late+abs(e.drift) {
				report.find("I10", p.task, "process %d of generation %d was seen %d ms after that had ended", p.pid, p.generation, e.wall(last)-c.ended)
			}
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// wallOffset is the wall clock in ms when the monotonic one was 0.
func wallOffset() int64 { return time.Now().UnixMilli() - monotonic()/1000 }
