package dbtest

import (
	"cmp"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// readAll reads all tasks and limits.
func (m *orderModel) readAll() (map[int64]jobs.Task, map[db.Target]db.LimitStatus) {
	tasks := map[int64]jobs.Task{}
	for _, task := range must(m.List(m.Context(), jobs.Filter{}))(m) {
		tasks[task.ID] = task
	}
	limits := map[db.Target]db.LimitStatus{}
	for _, l := range must(m.Limits(m.Context(), m.now))(m) {
		limits[l.Target] = l
	}
	return tasks, limits
}

// check checks the three rules after a step.
func (m *orderModel) check() {
	tasks, limits := m.readAll()
	holders := map[string][]jobs.Task{}
	inUse := map[db.Target]int{}
	for _, task := range tasks {
		if task.Lane != "" && taskspec.HoldsLane(task.State) {
			holders[task.Lane] = append(holders[task.Lane], task)
		}
		if task.State == jobs.Running {
			inUse[db.Target{Kind: "all"}]++
			inUse[db.Target{Kind: "lane", Name: task.Lane}]++
			inUse[db.Target{Kind: "queue", Name: task.Queue}]++
			inUse[db.Target{Kind: "job", Name: task.Job}]++
		}
		m.checkDependencies(task, tasks)
	}
	for target, l := range limits {
		if l.InUse != inUse[target] {
			m.T.Fatalf("%v: got %d in use, want %d", target, l.InUse, inUse[target])
		}
		if l.Running > 0 && l.InUse > l.Running && l.InUse > m.inUse[target] {
			m.T.Fatalf("%v: got %d in use, want at most %d", target, l.InUse, l.Running)
		}
	}
	m.inUse = inUse
	slots := func(lane string) int { return max(limits[db.Target{Kind: "lane", Name: lane}].Running, 1) }
	for lane, list := range holders { // a lane may have too many holders after its limit was lowered, but it may get no new holder
		if len(list) > slots(lane) && slices.ContainsFunc(list, func(task jobs.Task) bool {
			return !taskspec.HoldsLane(m.before[task.ID].State) || m.before[task.ID].Lane != lane
		}) {
			m.T.Fatalf("lane %s: got holders %+v, want at most %d", lane, list, slots(lane))
		}
	}
	for _, task := range tasks { // a task may wait for a lane only if an earlier task holds the lane, or if the rate of the lane is used up
		if task.State != jobs.Blocked || task.Waits {
			continue
		}
		if task.Lane == "" {
			m.T.Fatalf("got blocked task %d without a dependency or a lane, want a reason", task.ID)
		}
		paused := len(holders[task.Lane]) >= slots(task.Lane)
		if l, limited := limits[db.Target{Kind: "lane", Name: task.Lane}]; !paused && (!limited || l.NextAt.IsZero()) &&
			!m.dueUnseen(l) {
			m.T.Fatalf("got task %d waiting for free lane %s, want it to hold the lane", task.ID, task.Lane)
		}
		was, known := m.before[task.ID]
		for _, holder := range holders[task.Lane] {
			if known && was.State == jobs.Blocked && !was.Waits && m.before[holder.ID].State == jobs.Blocked &&
				cmp.Or(cmp.Compare(holder.Priority, task.Priority), cmp.Compare(task.ID, holder.ID)) < 0 {
				m.T.Fatalf("lane %s: got holder %d, want %d first", task.Lane, holder.ID, task.ID)
			}
		}
	}
	m.before = tasks
	clear(m.retried)
}

// dueUnseen reports whether the rate of a lane permits a start now. A task may
// still wait for such a lane, because only the next cycle of a worker gives the
// lane to the task.
func (m *orderModel) dueUnseen(l db.LimitStatus) bool { return l.Rate > 0 && l.NextAt.IsZero() }

// checkDependencies checks that the state of a task agrees with the states of
// its dependencies.
func (m *orderModel) checkDependencies(task jobs.Task, tasks map[int64]jobs.Task) {
	open := slices.Concat(task.DependsOn, task.DependsOnAny)
	if task.Waits != (len(open) > 0 || !task.PausedAt.IsZero()) || task.Waits && task.State != jobs.Blocked {
		m.T.Fatalf("task %d: got state %s, waits %v; want blocked while it waits for %v", task.ID, task.State, task.Waits, open)
	}
	for _, id := range open {
		if on, ok := tasks[id]; !ok || on.State.Finished() {
			m.T.Fatalf("task %d: got dependency %d, which has ended, want unfinished ones only", task.ID, id)
		}
	}
	was, known := m.before[task.ID]
	if m.retried[task.ID] || known && !was.Waits {
		return
	}
	after, afterAny := was.DependsOn, was.DependsOnAny // the dependencies that the task had after the previous step
	if !known {
		after, afterAny = m.after[task.ID][0], m.after[task.ID][1]
	}
	broken := false
	for _, id := range after {
		broken = broken || !slices.Contains(open, id) && stateOf(tasks, m.before, id) != jobs.Completed
	}
	for _, id := range afterAny {
		broken = broken || !slices.Contains(open, id) && !stateOf(tasks, m.before, id).Finished()
	}
	if broken && task.State != jobs.Cancelled {
		m.T.Fatalf("task %d: got state %s with a broken dependency among %v and %v, want cancelled", task.ID, task.State, after,
			afterAny)
	}
	if !broken && task.Reason == jobs.ReasonDependency {
		m.T.Fatalf("task %d: got cancelled (%s) without a broken dependency among %v and %v, want another state",
			task.ID, task.Error, after, afterAny)
	}
}

// drain removes all limits and pauses, and runs all tasks.
func (m *orderModel) drain() {
	must(m.Apply(m.Context(), m.ids(), db.ResumeTask("test", m.now)))(m)
	m.wantNoTaskPauses()
	m.check() // check before the limits are removed: a lane without a limit may not have several holders
	_, limits := m.readAll()
	for target := range limits {
		must(m.RemoveLimit(m.Context(), target, m.now))(m)
	}
	if err := m.Resume(m.Context(), []string{db.AllQueues}); err != nil {
		m.T.Fatal(err)
	}
	for range 1000 {
		m.check()
		if !slices.ContainsFunc(m.ids(), func(id int64) bool { return !m.before[id].State.Finished() }) {
			return
		}
		for _, task := range m.running {
			m.orderStore.finish(task, nil)
		}
		m.check()
		m.now = m.now.Add(10 * time.Second)
		m.running = m.orderStore.claim(3)
	}
	m.T.Fatalf("got unfinished tasks %+v, want none", m.before)
}
