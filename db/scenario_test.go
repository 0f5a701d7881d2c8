package db

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// scenario runs some tasks from their insert to their deletion. Its steps
// enqueue, claim, finish, lose, cancel, retry and delete tasks. Each step makes
// a few calls, as a worker or a command would make them. After an error, a test
// can repeat the failed step, as a worker or a command repeats its calls.
type scenario struct {
	d    *DB
	at   time.Time
	w    *Worker
	held map[ClaimID]jobs.Task // claims that the worker knows

	finishing []Finish // attempts that have ended, but whose ends are not written yet

	inserted    []int64        // ids of tasks that an insert has returned
	finished    []ClaimID      // claims whose finish was confirmed
	deleting    map[int64]bool // ids of tasks whose deletion has begun
	otherJoined bool           // whether the second worker, which loses its task, is registered
	startedOnce bool           // whether Sync has confirmed that the claim of the at-most-once task is on the disk

	// These are what was inserted and finished at the last sync of the log.
	// With Options.Flash, a power failure can undo all later writes.
	syncedInserts  []int64
	syncedFinishes []ClaimID
}

// synced records that a power failure can undo none of the writes that were
// confirmed so far.
func (l *scenario) synced() {
	l.syncedInserts, l.syncedFinishes = slices.Clone(l.inserted), slices.Clone(l.finished)
}

func newScenario(d *DB) *scenario {
	return &scenario{d: d, at: now(), held: map[ClaimID]jobs.Task{}, deleting: map[int64]bool{}}
}

var steps = []func(*scenario) error{
	(*scenario).enqueue, (*scenario).register, (*scenario).claim, (*scenario).beat, (*scenario).print, (*scenario).finish,
	(*scenario).later, (*scenario).claim, (*scenario).cancel, (*scenario).finish, (*scenario).lose, (*scenario).claim,
	(*scenario).finish, (*scenario).pause, (*scenario).tick, (*scenario).claim, (*scenario).finish, (*scenario).again,
	(*scenario).claim, (*scenario).finish, (*scenario).delete, (*scenario).prune, (*scenario).end,
}

// run runs the steps one after another, and stops at the first error. With
// again, it repeats a failed step once before it gives up.
func (l *scenario) run(again bool) error {
	for i, step := range steps {
		err := step(l)
		if err != nil && again {
			err = step(l)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// enqueue adds tasks with unique keys. So a repeated call adds no second task.
func (l *scenario) enqueue() error {
	command := func(options ...jobs.Option) jobs.Spec {
		return jobs.Command(commands.Command{Argv: []string{"true"}}, options...)
	}
	input := command(jobs.Unique("b"))
	input.Input = []byte("abc")
	for _, specs := range [][]jobs.Spec{
		{command(jobs.Unique("a"), jobs.MaxAttempts(2), jobs.Priority(9)), input},
		{command(jobs.Unique("c"), jobs.In(time.Minute)), command(jobs.Unique("d"), jobs.Lane("l")),
			command(jobs.Unique("e"), jobs.Lane("l"))},
		{command(jobs.Unique("f"), jobs.DependsOn(1)), command(jobs.Unique("g"), jobs.AtMostOnce())},
	} {
		added, err := l.d.Insert(context.Background(), specs, l.at)
		if err != nil {
			return err
		}
		for _, a := range added {
			l.inserted = append(l.inserted, a.ID)
		}
	}
	return nil
}

func (l *scenario) register() (err error) {
	l.w, err = l.d.Register(context.Background(), WorkerInfo{ID: NewWorkerID(), Name: "w", Lease: time.Minute, StartedAt: l.at},
		[]ClaimJob{{Job: commands.Job, MaxAttempts: 1}})
	return err
}

// claim first releases the claims of an earlier call whose reply was lost. Then
// it claims two tasks.
func (l *scenario) claim() error {
	owned, err := l.w.Owned(context.Background())
	if err != nil {
		return err
	}
	unknown := slices.DeleteFunc(owned, func(c ClaimID) bool { _, known := l.held[c]; return known })
	if len(unknown) > 0 {
		if err := l.w.Release(context.Background(), unknown, l.at); err != nil {
			return err
		}
	}
	result, err := l.w.Cycle(context.Background(), Cycle{Now: l.at, Look: true, Claim: Claim{Free: 2, Lease: time.Minute, Idle: true}})
	if err != nil {
		return err
	}
	for _, task := range result.Claimed {
		l.held[ClaimID{task.ID, task.GenerationID}] = task
	}
	if !slices.ContainsFunc(result.Claimed, func(t jobs.Task) bool { return t.MaxLosses == 0 }) {
		return nil
	}
	if err := l.w.Sync(context.Background(), l.at); err != nil {
		return err
	}
	l.startedOnce = true
	l.synced()
	return nil
}

// claims lists the claims that the worker knows, in the order of their ids.
func (l *scenario) claims() []ClaimID {
	return slices.SortedFunc(maps.Keys(l.held), func(a, b ClaimID) int { return int(a.ID - b.ID) })
}

func (l *scenario) beat() error {
	_, err := l.w.Beat(context.Background(), l.claims(), time.Minute, l.at)
	return err
}

func (l *scenario) print() error {
	for _, c := range l.claims() {
		out := Output{Add: []Chunk{{Seq: 1, Stream: "stdout", At: l.at, Data: []byte(strings.Repeat("x", 5000))}}}
		if err := l.w.WriteOutput(context.Background(), l.held[c], out); err != nil {
			return err
		}
	}
	return nil
}

// finish ends the attempts of the claims that the worker knows. The first
// attempt of task 1 fails, tasks with a cancel request are cancelled, and all
// other tasks complete. If the call is repeated, it writes the same outcomes.
func (l *scenario) finish() error {
	if l.finishing == nil {
		requests, err := l.w.CancelRequests(context.Background())
		if err != nil {
			return err
		}
		l.at = l.at.Add(time.Second)
		for _, c := range l.claims() {
			l.finishing = append(l.finishing, Finish{Task: l.held[c],
				Outcome: l.outcome(l.held[c], slices.ContainsFunc(requests, func(a CancelRequest) bool { return a.ClaimID == c })),
				Output:  Output{Add: []Chunk{{Seq: 2, Stream: "stderr", At: l.at, Data: []byte("end")}}}})
		}
	}
	result, err := l.w.Cycle(context.Background(), Cycle{Now: l.at, Finish: l.finishing})
	if err != nil {
		return err
	}
	for i, f := range l.finishing {
		if result.Finished[i].Fenced {
			return fmt.Errorf("task %d is fenced", f.Task.ID)
		}
		delete(l.held, ClaimID{f.Task.ID, f.Task.GenerationID})
		l.finished = append(l.finished, ClaimID{f.Task.ID, f.Task.GenerationID})
	}
	l.finishing = nil
	l.synced()
	return nil
}

func (l *scenario) outcome(task jobs.Task, cancelled bool) taskspec.Outcome {
	o := taskspec.Outcome{Started: task.StartedAt, Finished: l.at}
	switch {
	case cancelled:
		o.Reason, o.Error = jobs.ReasonCancelled, "cancelled"
	case task.ID == 1 && task.Attempt == 1:
		o.Reason, o.Error, o.ExitCode = jobs.ReasonExit, "exit 1", new(1)
	default:
		o.Result, o.ExitCode = []byte(`{"n":1}`), new(0)
	}
	return o
}

func (l *scenario) later() error { l.at = l.at.Add(time.Hour); return nil }

func (l *scenario) cancel() error {
	_, err := l.d.Apply(context.Background(), []int64{l.claims()[0].ID}, Cancel("by a test", false, l.at))
	return err
}

// lose registers a second worker, which tries to claim a task and then counts
// as dead. The first worker records the loss.
func (l *scenario) lose() error {
	ctx := context.Background()
	if !l.otherJoined {
		other, err := l.d.Register(ctx, WorkerInfo{ID: NewWorkerID(), Name: "other", Lease: time.Minute, StartedAt: l.at},
			[]ClaimJob{{Job: commands.Job, MaxAttempts: 1}})
		if err != nil {
			return err
		}
		l.otherJoined = true
		if _, err = other.Cycle(ctx, Cycle{Now: l.at, Look: true, Claim: Claim{Free: 1, Lease: time.Minute, Idle: true}}); err != nil {
			return err
		}
	}
	owners, err := l.w.Owners(ctx)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if _, err := l.w.ReapDead(ctx, o.Number, l.at); err != nil {
			return err
		}
	}
	return nil
}

func (l *scenario) pause() error {
	if err := l.d.Pause(context.Background(), []string{"default"}, Pause{At: l.at, By: "ann"}); err != nil {
		return err
	}
	return l.d.Resume(context.Background(), []string{"default"})
}

func (l *scenario) tick() error {
	spec := jobs.Command(commands.Command{Argv: []string{"true"}})
	due := l.at.Truncate(time.Hour)
	err := l.d.ChangeSchedules(context.Background(), "", l.at, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
		return []jobs.Schedule{{Name: "s", Cron: "0 * * * *", Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpOne,
			CatchUpWindow: time.Hour, Spec: spec, NextAt: due}}, nil, nil
	})
	if err != nil {
		return err
	}
	_, err = l.d.Tick(context.Background(), l.at, false, func(s jobs.Schedule) ([]time.Time, time.Time, error) {
		return []time.Time{due}, due.Add(time.Hour), nil
	}, nil)
	return err
}

func (l *scenario) again() error {
	_, err := l.d.Apply(context.Background(), []int64{2}, Retry(time.Time{}, l.at, false))
	return err
}

func (l *scenario) delete() error {
	l.deleting[3] = true
	_, err := l.d.Apply(context.Background(), []int64{3}, Delete())
	return err
}

func (l *scenario) prune() error {
	_, err := l.d.Vacuum(context.Background())
	return err
}

func (l *scenario) end() error {
	if err := l.w.Drain(context.Background()); err != nil {
		return err
	}
	return l.w.End(context.Background(), l.at)
}

func TestScenarioWithoutFailures(t *testing.T) {
	d := openTest(t)
	if err := newScenario(d).run(false); err != nil {
		t.Fatal(err)
	}
	t.Log(strings.Join(summary(t, d), "\n"))
}

// summary describes the tasks of a database, without values that differ from
// run to run.
func summary(t *testing.T, d *DB) (list []string) {
	t.Helper()
	tasks, err := d.List(t.Context(), jobs.Filter{OldestFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		attempts, err := d.Attempts(t.Context(), task.ID)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%d %s %s attempt %d result %s:", task.ID, task.State, task.Reason, task.Attempt, task.Result)
		for _, a := range attempts {
			if a.Reason == jobs.ReasonLost { // leave out losses: a task whose claim got no reply has one loss more than in other runs
				continue
			}
			chunks, err := d.Output(t.Context(), ClaimID{task.ID, a.GenerationID}, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprintf(" %s(%s, counted %v, %d pieces)", a.State, a.Reason, a.Counted, len(chunks))
		}
		list = append(list, line)
	}
	queues, err := d.Queues(t.Context(), now().Add(-time.Hour), now())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		list = append(list, fmt.Sprintf("%s ended %v", name, queues[name].Ended))
	}
	return list
}
