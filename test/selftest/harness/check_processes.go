package harness

import (
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// index builds the lookup maps. Their times are ms of the wall clock.
func (e *evidence) index() {
	e.lifetimesOf, e.kills, e.guardiansHit, e.stoppedSpans = map[int][]lifetime{}, map[int][]int64{}, map[int]bool{}, map[int][]span{}
	for _, l := range e.lifetimes {
		e.lifetimesOf[l.pid] = append(e.lifetimesOf[l.pid], l)
	}

	held, stopped := &nesting{}, map[int]*nesting{}
	for _, n := range e.notes {
		pid, at := 0, e.wall(n.at)
		if n.op == opKill || n.op == opGuardians || n.op == opStop || n.op == opResume {
			pid, _ = strconv.Atoi(n.text)
			if stopped[pid] == nil {
				stopped[pid] = &nesting{}
			}
		}

		switch n.op {
		case opLocked:
			held.begin(at)
		case opUnlocked:
			held.end(at)
		case opKill:
			e.kills[pid] = append(e.kills[pid], at)
		case opGuardians:
			e.guardiansHit[pid] = true
		case opStop:
			stopped[pid].begin(at)
		case opResume:
			stopped[pid].end(at)
		}
	}

	e.locked = held.spans
	for pid, d := range stopped {
		e.stoppedSpans[pid] = d.spans
	}
}

// nesting collects the spans between begin and end events. Nested spans become
// one span.
type nesting struct {
	level int
	from  int64
	spans []span
}

func (d *nesting) begin(at int64) {
	if d.level++; d.level == 1 {
		d.from = at
	}
}

func (d *nesting) end(at int64) {
	if d.level--; d.level == 0 {
		d.spans = append(d.spans, span{d.from, at})
	}
}

// overlap returns how much of the period between from and to is covered by the
// spans. The spans must be sorted and disjoint.
func overlap(spans []span, from, to int64) (sum int64) {
	first := sort.Search(len(spans), func(i int) bool { return spans[i].to > from })
	for _, s := range spans[first:] {
		if s.from >= to {
			break
		}
		sum += max(0, min(to, s.to)-max(from, s.from))
	}

	return sum
}

func (e *evidence) lockedWithin(from, to int64) int64 { return overlap(e.locked, from, to) }

// deathOf returns when a worker died: if a process noted that it was about to
// kill it, the time of this note (and killed is true), otherwise when its
// parent noticed the end. known is false if there is no record of the process.
func (e *evidence) deathOf(w *workerHistory) (at int64, killed, known bool) {
	for _, l := range e.lifetimesOf[w.pid] {
		started, ended := e.wall(l.started), e.wall(l.ended)
		if w.joinedAt < started-abs(e.drift) || w.joinedAt > ended+abs(e.drift) {
			continue
		}
		for _, at := range e.kills[w.pid] { // the kills are sorted by time, so the loop finds the first kill of this process
			if at >= started && at <= ended {
				return at, true, true
			}
		}

		return ended, false, true
	}

	return 0, false, false
}

// checkDeaths checks rule I3 of docs/reliability.md: no worker was declared
// dead before it died. For rule I13 it measures how long others needed to
// recover the tasks of every killed worker, even if faults also hit its
// guardians or others.
func (e *evidence) checkDeaths(r *replay, report *Report) {
	const noticed = 1000 // a parent notices the end of a child within this many ms
	var recovered, leases []time.Duration
	lost := map[string]bool{} // workers that had tasks when they died
	for _, t := range r.tasks {
		for _, c := range t.claims {
			switch c.endedBy {
			case endedByDeath:
				lost[c.worker] = true
			case endedByLease:
				leases = append(leases, time.Duration(c.endedAt-c.leaseWritten-e.lockedWithin(c.leaseWritten, c.endedAt))*time.Millisecond)
			}
		}
	}

	for _, w := range r.workers {
		if w.leftAt == 0 || w.leftItself {
			continue
		}
		death, killed, known := e.deathOf(w)
		switch {
		case known && killed && w.leftAt < death-5-abs(e.drift), known && !killed && w.leftAt < death-noticed-abs(e.drift):
			report.add("I3", 0, "worker %s (process %d) was declared dead %d ms before it died", w.id, w.pid, death-w.leftAt)
		case known && killed && lost[w.id]:
			recovered = append(recovered, time.Duration(w.leftAt-death-e.lockedWithin(death, w.leftAt))*time.Millisecond)
		}
	}

	f := &report.Figures
	f.Recoveries, f.RecoveryP99, f.RecoveryMax = len(recovered), seconds(percentile(recovered, 0.99)), seconds(percentile(recovered, 1))
	f.Leases, f.LeaseMax = len(leases), seconds(percentile(leases, 1))
}

// checkSurvivors checks rule I10 of docs/reliability.md: no process outlived
// its attempt or its worker.
func (e *evidence) checkSurvivors(r *replay, report *Report) {
	const late = 1000 // how many ms a process may outlive its attempt or its worker
	for m, seen := range e.lastSeen {
		c := r.claimOf(m.task, m.generation)
		if c == nil { // checkExecutions reports an attempt that no worker has claimed, so skip it here
			continue
		}

		last := e.wall(seen)
		after := func(at int64) int64 { return last - at - e.lockedWithin(at, last) }
		if w := r.workers[c.worker]; w != nil {
			if death, killed, _ := e.deathOf(w); killed && !e.guardiansHit[w.pid] && after(death) > late+abs(e.drift) {
				report.Figures.Orphans++
				report.add("I10", m.task, "process %d (%s) lived for %d ms after its worker was killed", m.pid, m.traits, last-death)
			}
		}
		if c.endedAt == 0 || after(c.endedAt) <= late+abs(e.drift) {
			continue
		}

		report.Figures.Survivors++
		report.add("I10", m.task, "process %d (%s) was alive %d ms after its attempt had ended, generation %d",
			m.pid, m.traits, last-c.endedAt, m.generation)
	}
}

func (r *replay) claimOf(task, generation int64) *claim {
	t := r.tasks[task]
	if t == nil {
		return nil
	}

	at := slices.IndexFunc(t.claims, func(c *claim) bool { return c.generation == generation })
	if at < 0 {
		return nil
	}

	return t.claims[at]
}

// attemptProcessOf returns the attempt process with the pid, or the zero value
// if no note names that process.
func (e *evidence) attemptProcessOf(pid int) attemptProcess {
	start := startTime(pid)
	for m := range e.lastSeen {
		if m.pid == pid && m.start == start {
			return m
		}
	}
	return attemptProcess{}
}

func (m attemptProcess) has(trait string) bool {
	return slices.Contains(strings.Split(m.traits, ","), trait)
}

// measureDelays measures how long a worker takes to record a command's end
// while processes that other commands left behind are alive. It uses only quick
// tasks. It subtracts the periods in which a fault could block all writes, or
// in which the worker or one of its guardians was stopped.
func (e *evidence) measureDelays(r *replay, report *Report) {
	var alive []span // periods in which processes that a command had left behind were alive
	for _, n := range e.notes {
		start, traits, ok := n.process()
		if !ok || traits == leader {
			continue
		}

		f := &report.Figures
		f.Leftovers++
		m := attemptProcess{n.pid, start, n.task, n.generation, traits}
		if m.has(noEnvironment) || m.has(undumpable) {
			f.Unreadable++
		}
		if m.has(changesUser) && os.Geteuid() == 0 {
			f.Foreign++
		}
		if last, ok := e.lastSeen[m]; ok {
			alive = append(alive, span{e.wall(n.at), e.wall(last)})
		}
	}

	alive = merge(alive)
	var delays []time.Duration
	for _, n := range e.notes {
		if n.op != opEnd {
			continue
		}

		c, t, at := r.claimOf(n.task, n.generation), r.tasks[n.task], e.wall(n.at)
		if c == nil || c.endedBy != endedByOwner || c.endedAt == 0 || kindOf(t.label) != quick || overlap(alive, at, at+1) == 0 {
			continue
		}
		// A note with the pid of the worker comes from a function, because
		// functions run in the worker. Only commands are measured.
		if n.pid == r.pidOf(c.worker) {
			continue
		}

		excluded := e.lockedWithin(at, c.endedAt) + overlap(e.stoppedSpans[r.pidOf(c.worker)], at, c.endedAt)
		delays = append(delays, time.Duration(max(0, c.endedAt-at-excluded))*time.Millisecond)
	}

	f := &report.Figures
	f.Delays, f.DelayP99, f.DelayMax = len(delays), seconds(percentile(delays, 0.99)), seconds(percentile(delays, 1))
}

func (r *replay) pidOf(worker string) int {
	if w := r.workers[worker]; w != nil {
		return w.pid
	}
	return 0
}

// merge sorts spans and joins overlapping ones.
func merge(list []span) (merged []span) {
	slices.SortFunc(list, func(a, b span) int { return int(a.from - b.from) })
	for _, s := range list {
		if last := len(merged) - 1; last >= 0 && s.from <= merged[last].to {
			merged[last].to = max(merged[last].to, s.to)
			continue
		}
		merged = append(merged, s)
	}

	return merged
}
