package db

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// While any session of a server holds an old snapshot, the server can't remove
// the entries of claimed tasks from the index tasks_pending, and a claim that
// begins at the first entry reads them all. So a worker on a server remembers
// floors: for each queue, job and priority the highest id that it had claimed a
// moment ago. While the index has many entries of claimed tasks, its claims
// read only the entries above the floors, and the index tasks_again, which has
// the pending tasks with a generation above 1.
//
// Invariants:
//   - A floor is the id of a task that the worker claimed at least floorStep
//     ago. So claims find a task even if it's committed up to floorStep after
//     it got its id.
//   - A pending task at or below its floor has a generation above 1, except if
//     its transaction took long, if a claim was rolled back, if its priority
//     was changed, or if plain SQL has written it. The next look finds these
//     few.
//   - Once a second, or rarely if it takes long, the worker looks at the first
//     pending task of each queue and job. The look finds new queues, lowers a
//     floor that is above a pending task, and decides whether claims use
//     floors. Until then CycleResult.NextStart is the time of the next look, so
//     an idle worker looks, too.
//   - Floors change only which tasks a claim considers. Only the
//     compare-and-swap of the claim decides which worker gets a task.

const (
	floorCost   = 500 * time.Microsecond // claims use floors if the server takes longer for a look, about 12,000 entries
	floorEvery  = time.Second            // time between two looks
	lookTimeout = 5 * time.Second        // a look that takes longer fails, and claims use no floors
	floorShare  = 30                     // a look begins only when this many times the duration of the last one has passed
	floorStep   = 100 * time.Millisecond // age of a claim that raises a floor
	floorQueues = 16                     // claims use no floors if the worker knows more queues, because each is a statement
	floorJobs   = 200                    // claims use no floors if the worker has more jobs: a statement has at most 65,535 parameters
	floorsEach  = 8                      // number of priorities of a queue and job that have a floor
)

// The table of tasks accepts these priorities.
const (
	leastPriority    = -1 << 31
	greatestPriority = 1<<31 - 1
)

// selectFirsts is for servers. For each pair of a queue and a job in the JSON
// array [1] it returns the pending task that a claim would take first. Its last
// row has no task, but the time in microseconds that the statement has taken.
// Index: tasks_pending.
var selectFirsts = query(`SELECT value->>0 AS queue, value->>1 AS job, first.priority, first.id FROM {json_each}, LATERAL (
	SELECT priority, id FROM {tasks} WHERE state = 'pending' AND queue = value->>0 AND job = value->>1
	AND NOT (losses >= 1 AND losses >= max_losses - 1)` + unreserved + `
	ORDER BY priority DESC, id LIMIT 1) AS first
UNION ALL SELECT '', '', 0, CAST(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000 AS bigint)`)

// claimAbove replaces claimTasks for claims with floors. A statement has one
// part for each range of priorities of a job, with the parameters of aboveArm
// and then the same for belowArm: max attempts, queue, job, least and greatest
// priority, floor.
var claimAbove = &sqltext.Series{Template: claimJobs, Part: aboveAndBelow, Separator: unionAll, Params: 12,
	Parts: sqltext.Parts{"above": aboveArm, "below": belowArm}}

const aboveAndBelow = `SELECT * FROM ({above} ORDER BY priority DESC, id LIMIT ?{after_parts} FOR UPDATE SKIP LOCKED) AS above
	UNION ALL SELECT * FROM ({below} ORDER BY priority DESC, id LIMIT ?{after_parts} FOR UPDATE SKIP LOCKED) AS below`

// aboveArm is claimSelect for priorities from [4] to [5] and ids above the
// floor, [6]. belowArm selects the tasks with ids up to the floor that have
// changed since they were added (generation_id > 1). Indexes: tasks_pending,
// tasks_again.
const (
	aboveArm = claimSelect + ` AND priority BETWEEN ? AND ? AND id > ?`
	belowArm = `SELECT id, generation_id, priority, {bigint_param} AS most{row_address} FROM {tasks}
	WHERE {unindexed}state = 'pending' AND generation_id > 1 AND queue = ? AND job = ? AND priority BETWEEN ? AND ? AND id <= ?
	AND NOT (losses >= 1 AND losses >= max_losses - 1)` + unreserved
)

type floors struct {
	slow   bool          // whether claims use the floors
	looked time.Time     // time of the last look
	every  time.Duration // time from the last look to the next one
	raised time.Time     // time at which the floors were last raised
	queues []string      // queues of claimed tasks, and queues in which the last look saw pending tasks
	of     map[part][]floor
}

// floor is the floor of a priority. The floors of a queue and job are sorted by
// descending priority.
type floor struct {
	priority   int64
	id         int64 // claims read only higher ids
	last, seen int64 // highest ids that were claimed when the floors were last raised, and until now
}

// idRange is a range of priorities, and the id above which a claim looks for
// tasks with these priorities.
type idRange struct{ low, high, floor int64 }

// look raises the floors and, if it's time, looks at the first pending tasks.
func (w *Worker) look(ctx context.Context, now time.Time) {
	f := &w.claimer.floors
	if age := now.Sub(f.raised).Abs(); age >= floorStep {
		f.raised = now
		f.each(func(_ part, one *floor) { one.id, one.last = max(one.id, one.last), one.seen })
	}
	if now.Sub(f.looked).Abs() < f.every {
		return
	}

	f.looked, f.every = now, floorEvery
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	first, queues, cost, err := w.firstTasks(ctx)
	if err != nil { // without looks, claims would never find what is below a floor
		f.slow, f.queues, f.of = false, nil, nil
		return
	}

	f.every = max(floorEvery, 2*floorShare*cost) // the server also takes about this time to list the queues
	for _, queue := range queues {
		f.know(queue)
	}

	if f.slow = cost > floorCost && len(f.queues) <= floorQueues && len(w.claimer.jobs) <= floorJobs; !f.slow {
		f.queues, f.of = nil, nil
		return
	}

	f.each(func(p part, one *floor) {
		for _, task := range first {
			if (part{task.Queue, task.Job}) == p && task.Priority == one.priority && task.ID <= one.seen {
				one.id, one.last, one.seen = min(one.id, task.ID-1), task.ID-1, task.ID-1
			}
		}
	})
}

// firstTask is a row of selectFirsts.
type firstTask struct {
	Queue    string `db:"queue"`
	Job      string `db:"job"`
	Priority int64  `db:"priority"`
	ID       int64  `db:"id"`
}

// firstTasks returns the first pending task of each queue and job, the queues
// with pending tasks, and the time that the server has taken.
func (w *Worker) firstTasks(ctx context.Context) (first []firstTask, queues []string, cost time.Duration, err error) {
	if queues, err = readRows[string](ctx, w.db, selectQueues); err != nil {
		return nil, nil, 0, err
	}

	var pairs [][2]string
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(queues, w.claimer.floors.queues)))) {
		for _, job := range w.claimer.jobs {
			pairs = append(pairs, [2]string{queue, job.Job})
		}
	}

	if first, err = readRows[firstTask](ctx, w.db, selectFirsts, jsonText(pairs)); err != nil {
		return nil, nil, 0, err
	}

	last := len(first) - 1
	return first[:last], queues, time.Duration(first[last].ID) * time.Microsecond, nil
}

func (f *floors) each(do func(part, *floor)) {
	for p, list := range f.of {
		for i := range list {
			do(p, &list[i])
		}
	}
}

func (f *floors) know(queue string) {
	if !slices.Contains(f.queues, queue) {
		f.queues = append(f.queues, queue)
	}
}

// note records the tasks that a claim has taken. They are the first pending
// tasks of their job and priority in the queue.
func (f *floors) note(claimed []jobs.Task) {
	if f.of == nil {
		f.of = map[part][]floor{}
	}
	for i := range claimed {
		task := &claimed[i]
		f.know(task.Queue)
		p, priority := part{task.Queue, task.Job}, int64(task.Priority)
		list := f.of[p]
		at, known := slices.BinarySearchFunc(list, priority, func(one floor, to int64) int { return cmp.Compare(to, one.priority) })
		switch {
		case known:
			list[at].seen = max(list[at].seen, task.ID)
		case len(list) < floorsEach:
			f.of[p] = slices.Insert(list, at, floor{priority: priority, seen: task.ID})
		}
	}
}

// ranges returns the ranges of priorities of a job in a queue. A priority
// without a floor is in a range with the floor 0.
func (f *floors) ranges(p part) (ranges []idRange) {
	high := int64(greatestPriority)
	for _, one := range f.of[p] {
		ranges = append(ranges, idRange{one.priority + 1, high, 0}, idRange{one.priority, one.priority, one.id})
		high = one.priority - 1
	}
	return append(ranges, idRange{leastPriority, high, 0})
}

// aboveArgs returns a statement of claimAbove and the arguments of its parts.
// The number of parts is a power of two, so that a connection prepares few
// statements. A part without a job selects nothing.
func (c *claimer) aboveArgs(queue string, list []ClaimJob) (args []any, text *statement) {
	n := 0
	arm := func(job ClaimJob, name any, r idRange) {
		args = append(args, int64(max(job.MaxAttempts, 1)), queue, name, r.low, r.high, r.floor)
	}
	for _, job := range list {
		for _, r := range c.floors.ranges(part{queue, job.Job}) {
			arm(job, nullText(job.Job), r)
			if r.floor == 0 {
				arm(job, nil, r) // no task has a lower id
			} else {
				arm(job, nullText(job.Job), r)
			}
			n++
		}
	}

	for ; n&(n-1) != 0; n++ {
		arm(ClaimJob{}, nil, idRange{})
		arm(ClaimJob{}, nil, idRange{})
	}

	return args, claimAbove.Of(n)
}
