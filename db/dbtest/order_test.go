package dbtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// TestRandomOrders makes random calls of a store: enqueue, claim, finish,
// cancel, retry, limit, pause, loss and delete. After each call it checks three
// rules. A lane never runs more tasks than its limit allows, and starts them in
// order. No task starts before its dependencies have ended. Each blocked task
// has a reason for its state. At the end all tasks must finish.
func TestRandomOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprintf("%d.db", n))
		d, err := db.Open(t.Context(), path, db.Options{Create: true, Normal: true})
		if err != nil {
			rt.Fatal(err)
		}
		m := &orderModel{T: rt, orderStore: &orderStore{store: &store{T: t, DB: d, now: start}}, paused: map[string]bool{},
			retried: map[int64]bool{}}
		defer func() {
			m.raw.Close()
			d.Close()
			for _, end := range []string{"", "-wal", "-shm"} {
				os.Remove(path + end)
			}
		}()
		m.record()
		if rapid.Bool().Draw(rt, "cursor") {
			m.store.makeCursor(testCursor)
		}
		m.w = m.worker("test")
		m.check()
		rt.Repeat(map[string]func(*rapid.T){
			"add": m.add, "add again": m.add, "claim": m.claim, "finish": m.finish, "finish again": m.finish, "sleep": m.sleep,
			"cancel": m.cancel,
			"lose":   m.lose, "retry": m.retry, "limit": m.limit, "pause": m.pause, "delete": m.delete,
			"pauseTasks": m.pauseTasks, "resumeTasks": m.resumeTasks, "edit": m.editSome, "first": m.putSomeFirst,
			"": func(*rapid.T) { m.check() },
		})
		m.drain()
		changes := m.history()
		for _, problem := range violations(changes) {
			rt.Error(problem)
		}
		if err := checkEnds(m.store, changes); err != nil {
			rt.Error(err)
		}
	})
}

// orderModel is the state of TestRandomOrders.
type orderModel struct {
	*rapid.T
	*orderStore
	running []jobs.Task
	inUse   map[db.Target]int    // running tasks by target, after the previous step
	before  map[int64]jobs.Task  // tasks after the previous step
	after   map[int64][2][]int64 // dependencies of each task at its enqueue: DependsOn and DependsOnAny
	paused  map[string]bool
	retried map[int64]bool // tasks that this step has retried; a retried task waits only for its unfinished dependencies
}

func (m *orderModel) Fatal(args ...any) { m.T.Helper(); m.T.Fatal(args...) }

var lanesOfModel = []string{"", "", "a", "b"}

func (m *orderModel) ids() []int64 {
	var list []int64
	for id := range m.before {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// drawIDs draws at most limit ids of existing tasks.
func (m *orderModel) drawIDs(t *rapid.T, name string, limit int) []int64 {
	all := m.ids()
	if len(all) == 0 {
		return nil
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, min(limit, len(all)), rapid.ID).Draw(t, name)
}

func (m *orderModel) add(t *rapid.T) {
	options := []jobs.Option{jobs.Priority(rapid.IntRange(1, 3).Draw(t, "priority")),
		jobs.Lane(rapid.SampledFrom(lanesOfModel).Draw(t, "lane")),
		jobs.MaxAttempts(rapid.IntRange(1, 2).Draw(t, "attempts")), jobs.MaxLosses(rapid.IntRange(0, 1).Draw(t, "losses")),
		jobs.Queue(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "queue"))}
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		options = append(options, jobs.In(time.Second))
	}
	if rapid.IntRange(0, 5).Draw(t, "expires") == 0 {
		options = append(options, jobs.ExpiresIn(2*time.Second))
	}
	after, any := m.drawIDs(t, "after", 2), m.drawIDs(t, "any", 1)
	if rapid.IntRange(0, 4).Draw(t, "replaces") == 0 {
		options = append(options, jobs.UniqueWith("key", jobs.UniqueOptions{Replace: true}))
	}
	id, err := m.orderStore.tryAdd(append(options, jobs.DependsOn(after...), jobs.DependsOnAny(any...))...)
	if errors.Is(err, jobs.ErrConflict) { // replacing the task with this key would make an older task depend on a newer one
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, known := m.before[id]; known {
		m.retried[id] = true
	}
	if m.after == nil {
		m.after = map[int64][2][]int64{}
	}
	m.after[id] = [2][]int64{after, any}
}

func (m *orderModel) claim(t *rapid.T) {
	claimed := m.orderStore.claim(rapid.IntRange(1, 3).Draw(t, "slots"))
	m.running = append(m.running, claimed...)
	for _, task := range claimed {
		if m.paused[task.Queue] {
			t.Fatalf("got a claim of task %d from paused queue %s, want none", task.ID, task.Queue)
		}
	}
	for _, l := range must(m.Limits(m.Context(), m.now))(m) { // tasks that run already may exceed a new limit
		if l.Running > 0 && l.InUse > l.Running && slices.ContainsFunc(claimed, func(task jobs.Task) bool {
			return l.Target == db.Target{Kind: db.QueueTarget, Name: task.Queue} ||
				l.Target == db.Target{Kind: db.JobTarget, Name: task.Job}
		}) {
			t.Fatalf("%v: got %d running tasks, want at most %d", l.Target, l.InUse, l.Running)
		}
	}
}

// takeRunning removes a random running task from the model and returns it.
func (m *orderModel) takeRunning(t *rapid.T) jobs.Task {
	if len(m.running) == 0 {
		t.Skip("no task runs")
	}
	i := rapid.IntRange(0, len(m.running)-1).Draw(t, "which")
	task := m.running[i]
	m.running = slices.Delete(m.running, i, i+1)
	return task
}

func (m *orderModel) finish(t *rapid.T) {
	task := m.takeRunning(t)
	outcome := rapid.SampledFrom([]error{nil, nil, nil, errBad, jobs.Snooze(time.Second), jobs.Cancel(errBad)}).Draw(t, "outcome")
	m.orderStore.finish(task, outcome)
}

func (m *orderModel) sleep(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
	m.cycle(db.Cycle{Look: true})
}

func (m *orderModel) cancel(t *rapid.T) {
	must(m.Apply(m.Context(), m.drawIDs(t, "cancel", 1), db.Cancel("x", false, m.now)))(m)
}

// lose chooses a running task, and another worker records its loss.
func (m *orderModel) lose(t *rapid.T) {
	task := m.takeRunning(t)
	other := m.worker("test")
	leases := must(other.Leases(m.Context()))(m)
	leases = slices.DeleteFunc(leases, func(l db.Lease) bool { return l.ID != task.ID })
	if n := must(revokeAndReap(m.Context(), other, leases, m.now))(m); len(n) != 1 {
		t.Fatalf("got reaped tasks %v, want one", n)
	}
}

func (m *orderModel) retry(t *rapid.T) {
	act := db.Retry(m.now, m.now, rapid.Bool().Draw(t, "dependents"))
	for _, moved := range must(m.Apply(m.Context(), m.drawIDs(t, "retry", 1), act))(m) {
		m.retried[moved.ID] = true
	}
}

func (m *orderModel) pauseTasks(t *rapid.T) {
	must(m.Apply(m.Context(), m.drawIDs(t, "pauseTasks", 2), db.PauseTask("test", "", m.now)))(m)
}

func (m *orderModel) resumeTasks(t *rapid.T) {
	must(m.Apply(m.Context(), m.drawIDs(t, "resumeTasks", 3), db.ResumeTask("test", m.now)))(m)
}

func (m *orderModel) putSomeFirst(t *rapid.T) {
	must(m.PutFirst(m.Context(), m.drawIDs(t, "first", 2), "test", m.now))(m)
}

// editSome changes the priority, the lane and the due time of a task.
func (m *orderModel) editSome(t *rapid.T) {
	for _, id := range m.drawIDs(t, "edit", 1) {
		options := []jobs.Option{jobs.Priority(rapid.IntRange(1, 3).Draw(t, "priority"))}
		if rapid.Bool().Draw(t, "moves") {
			options = append(options, jobs.Lane(rapid.SampledFrom(lanesOfModel).Draw(t, "lane")))
		}
		switch rapid.IntRange(0, 3).Draw(t, "due") {
		case 0:
			options = append(options, jobs.In(time.Second))
		case 1:
			options = append(options, jobs.At(m.now))
		}
		_, err := m.tryEdit(id, options...)
		if err != nil && !errors.Is(err, jobs.ErrConflict) { // the task has finished
			t.Fatal(err)
		}
	}
}

func (m *orderModel) limit(t *rapid.T) {
	target := rapid.SampledFrom([]db.Target{{Kind: "lane", Name: "a"}, {Kind: "queue", Name: "x"},
		{Kind: "job", Name: "test"}, {Kind: "all"}}).Draw(t, "target")
	l := db.Limit{Target: target}
	l.Running = rapid.IntRange(0, 2).Draw(t, "running")
	if rapid.Bool().Draw(t, "rated") {
		l.Rate, l.Per, l.Burst = 1, time.Second, rapid.IntRange(1, 2).Draw(t, "burst")
	}
	if l.Running == 0 && l.Rate == 0 {
		must(m.RemoveLimit(m.Context(), target, m.now))(m)
		return
	}
	m.setLimit(l)
}

// pause pauses queue x or resumes it.
func (m *orderModel) pause(t *rapid.T) {
	m.paused["x"] = !m.paused["x"]
	call := func() error { return m.Resume(m.Context(), []string{"x"}) }
	if m.paused["x"] {
		call = func() error { return m.Pause(m.Context(), []string{"x"}, db.Pause{At: m.now, By: "test"}) }
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
}

func (m *orderModel) delete(t *rapid.T) {
	must(m.Apply(m.Context(), m.drawIDs(t, "delete", 2), db.Delete()))(m)
}
