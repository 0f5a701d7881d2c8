package db

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// While any session of a server holds an old snapshot, the server cannot remove the entries of claimed tasks from the index tasks_pending.
// A claim that begins at the first entry of the index reads all these entries. So a worker on a server keeps floors. A floor is an id: when
// the worker last looked, no new task up to this id was pending. While the index has many entries of claimed tasks, the claims of the
// worker read only the entries above the floors, and the index tasks_again, which has the pending tasks with a generation above 1.
//
// How: once a second the worker looks at all pending tasks of its jobs (a full look), on a connection that only reads and beside its
// cycles. If a full look takes longer than floorCost, claims use floors until a full look is faster. Meanwhile the worker makes a short
// look every floorStep: it looks above the floors only, and raises them.
//
// Invariants:
//   - A floor is at most the highest id that existed at the look before the last one. So claims find a task even if it is committed up
//     to floorStep after it got its id.
//   - A pending task below its floor has a generation above 1, except if its transaction took long, if its priority was changed, or if
//     plain SQL has written it. These few tasks wait until the next full look. A cycle that has released tasks itself claims without
//     floors.
//   - A claim uses no floors if the last full look is too old, or if the worker has claimed nothing since that look. So a worker does not
//     become idle before it has looked at all pending tasks. Until then CycleResult.NextStart is the time of the next claim.
//   - Floors change only which tasks a claim considers. Only the compare-and-swap of the claim decides which worker gets a task.

const (
	// Claims use floors if a read of all pending tasks takes longer than floorCost, the time for about 5,000 entries of the index.
	floorCost  = 200 * time.Microsecond
	floorEvery = time.Second            // time between two reads of all pending tasks
	floorStep  = 100 * time.Millisecond // time between two reads of the tasks above the floors
	// If a read of all pending tasks takes long, the next one begins only when floorShare times the duration of the read has passed.
	floorShare = 30
	// Claims use no floors if the last read of all pending tasks is older than floorAge times the time between two such reads.
	floorAge = 2
	// maxSplits limits, for each pair of queue and job, the number of priorities that have a floor of their own.
	maxSplits = 8
)

// These are the least and the greatest priority that the table of tasks accepts.
const (
	leastPriority    = -1 << 31
	greatestPriority = 1<<31 - 1
)

// firstAbove selects the first pending task of a range of priorities. Each row of json_each has one range in its column named value: the
// queue, the job, the least and the greatest priority, and the floor. The condition on the priority uses BETWEEN, because only then does
// PostgreSQL begin to read the index at the floor of the greatest priority. Index: tasks_pending.
const firstAbove = `SELECT priority, id FROM {tasks} WHERE state = 'pending' AND queue = value->>0 AND job = value->>1
	AND priority BETWEEN CAST(value->>2 AS bigint) AND CAST(value->>3 AS bigint) AND id > CAST(value->>4 AS bigint)
	ORDER BY priority DESC, id LIMIT 1`

// These statements are for servers. [1] is a JSON array of ranges of priorities (see partRange). selectFirsts returns the first pending
// task of each range, with the index of the range in the array. Its last row has no task, but the time in microseconds that the statement
// has taken. selectQueuesAbove returns the queues in which a claim may find a task. There are two kinds of such tasks: pending tasks above
// the floor of a range, and pending tasks with a generation above 1, which can be below the floor.
var (
	selectFirsts = query(`SELECT CAST(value->>5 AS bigint) AS at, first.priority, first.id
FROM {json_each}, LATERAL (` + firstAbove + `) AS first
UNION ALL SELECT -1, 0, CAST(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000 AS bigint)`)
	selectQueuesAbove = query(queuesAbove)
)

const queuesAbove = `SELECT value->>0 AS queue FROM {json_each} WHERE (SELECT id FROM (` + firstAbove + `) AS first) IS NOT NULL
	OR (SELECT id FROM {tasks} WHERE {unindexed}state = 'pending' AND generation_id > 1 AND queue = value->>0 AND job = value->>1
	LIMIT 1) IS NOT NULL`

// selectLastID returns the highest id of a task.
var selectLastID = query(`SELECT coalesce(max(id), 0) FROM {tasks}`)

// selectQueuesBetween returns, for each pair of names in the JSON array [1], the first queue with pending tasks whose name is between these
// two names. If the second name is null, there is no upper limit. Index: tasks_pending.
var selectQueuesBetween = query(`SELECT first.queue FROM {json_each}, LATERAL (SELECT queue FROM {tasks} WHERE state = 'pending'
	AND queue > value->>0 AND queue < coalesce(value->>1, U&'\+10FFFF') ORDER BY queue LIMIT 1) AS first`)

// claimAbove has the statements that claims with floors use instead of claimTasks. A statement has one part for each range of priorities of
// a job. The parameters of a part are those of aboveArm: max attempts, queue, job, least and greatest priority, and floor. The same
// parameters follow for belowArm.
var claimAbove = &sqltext.Series{Template: claimJobs, Part: aboveAndBelow, Separator: unionAll, Params: 12,
	Parts: sqltext.Parts{"above": aboveArm, "below": belowArm}}

const aboveAndBelow = `SELECT * FROM ({above} ORDER BY priority DESC, id LIMIT ?{after_parts} FOR UPDATE SKIP LOCKED) AS above
	UNION ALL SELECT * FROM ({below} ORDER BY priority DESC, id LIMIT ?{after_parts} FOR UPDATE SKIP LOCKED) AS below`

// aboveArm does the same as claimSelect, but only for priorities from [4] to [5] and for ids above the floor, [6]. belowArm selects the
// tasks with ids up to the floor that have changed since they were added (generation_id > 1). Indexes: tasks_pending, tasks_again.
const (
	aboveArm = `SELECT id, generation_id, priority, {bigint_param} AS most{row_address} FROM {tasks}
	WHERE state = 'pending' AND queue = ? AND job = ? AND priority BETWEEN ? AND ? AND id > ?
	AND NOT (losses >= 1 AND losses >= max_losses - 1)` + unreserved
	belowArm = `SELECT id, generation_id, priority, {bigint_param} AS most{row_address} FROM {tasks}
	WHERE {unindexed}state = 'pending' AND generation_id > 1 AND queue = ? AND job = ? AND priority BETWEEN ? AND ? AND id <= ?
	AND NOT (losses >= 1 AND losses >= max_losses - 1)` + unreserved
)

// idRange is a range of priorities, and the id above which a claim looks for tasks with these priorities.
type idRange struct{ low, high, floor int64 }

// partRange is an idRange of a job in a queue.
type partRange struct {
	part
	idRange
}

// firstTask is the first pending task of a range. At is the index of the range in the argument of selectFirsts.
type firstTask struct {
	At       int64 `db:"at"`
	Priority int64 `db:"priority"`
	ID       int64 `db:"id"`
}

// floors holds the floors of one worker. The comment at the beginning of this file explains floors and looks. A look runs beside the cycles
// of the worker, so mu guards the fields below it.
type floors struct {
	cost time.Duration // claims use floors if a full look takes longer; floorCost, except in tests

	mu      sync.Mutex
	looking bool               // whether a goroutine is looking at pending tasks
	looked  time.Time          // time at which the worker last began to look at pending tasks
	full    time.Time          // time at which the worker last began to look at all pending tasks
	every   time.Duration      // time between two looks at all pending tasks
	queues  []string           // queues of claimed tasks, and queues in which the worker has seen pending tasks
	ranges  map[part][]idRange // floors of each job in each queue, by descending priority; nil if floors are not in use
	highest int64              // highest id of a task when the worker last looked at pending tasks
	claimed bool               // whether the worker has claimed tasks since the time in the field "full"
}

// The method "use" reports whether a claim uses the floors. If it is time for the next look at the pending tasks, the method begins this
// look.
func (f *floors) use(d *DB, list []ClaimJob, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full.IsZero() || now.Before(f.looked) { // the first claim, or the clock was set back
		f.looked, f.full, f.every, f.ranges = now, now, floorEvery, nil
	}
	due := now.Sub(f.full) >= f.every
	if due && !f.claimed || now.Sub(f.full) >= floorAge*f.every {
		f.ranges = nil
	}
	if !f.looking && (due || f.ranges != nil && now.Sub(f.looked) >= floorStep) {
		f.looking, f.looked = true, now
		if due {
			f.full, f.claimed = now, false
		}
		d.looks.Go(func() { f.look(d, list, due) })
	}
	return f.ranges != nil
}

// next returns the time at which an idle worker must claim again. The parameter "now" is the current time.
func (f *floors) next(now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looking {
		return now.Add(floorStep)
	}
	return f.full.Add(f.every)
}

// The method "took" records the tasks that a claim has taken. If floors are in use, the priority of each task gets a floor of its own.
func (f *floors) took(claimed []jobs.Task) {
	if len(claimed) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claimed = true
	for i := range claimed {
		task := &claimed[i]
		if !slices.Contains(f.queues, task.Queue) {
			f.queues = append(f.queues, task.Queue)
		}
		if f.ranges != nil {
			p := part{task.Queue, task.Job}
			f.ranges[p] = splitAt(f.rangesOf(p), int64(task.Priority))
		}
	}
}

// rangesOf returns the ranges of priorities of a job in a queue, each with its floor. If the worker has no ranges for this job and queue
// yet, the result is one range of all priorities with the floor 0.
func (f *floors) rangesOf(p part) []idRange {
	if known := f.ranges[p]; known != nil {
		return known
	}
	return []idRange{{low: leastPriority, high: greatestPriority}}
}

// listRanges returns the ranges of priorities of each job in each queue. It skips the jobs whose name is empty.
func (f *floors) listRanges(queues []string, list []ClaimJob) (all []partRange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, queue := range queues {
		for _, job := range list {
			if job.Job == "" {
				continue
			}
			p := part{queue, job.Job}
			for _, r := range f.rangesOf(p) {
				all = append(all, partRange{p, r})
			}
		}
	}
	return all
}

// splitAt splits a range, so that the given priority has a range of its own. It changes nothing if there are more than 2*maxSplits ranges.
func splitAt(ranges []idRange, priority int64) []idRange {
	at := slices.IndexFunc(ranges, func(r idRange) bool { return priority >= r.low })
	if at < 0 || len(ranges) > 2*maxSplits {
		return ranges
	}
	r := ranges[at]
	if r.low == r.high {
		return ranges
	}
	var parts []idRange
	if priority < r.high {
		parts = append(parts, idRange{priority + 1, r.high, r.floor})
	}
	parts = append(parts, idRange{priority, priority, r.floor})
	if priority > r.low {
		parts = append(parts, idRange{r.low, priority - 1, r.floor})
	}
	return slices.Replace(slices.Clone(ranges), at, at+1, parts...)
}

// look reads the first pending task of each range of priorities, and raises the floors. A full look reads all pending tasks, and decides
// whether claims use floors. If looks fail, the floors become too old, and claims stop using them.
func (f *floors) look(d *DB, list []ClaimJob, full bool) {
	f.mu.Lock()
	queues, before, using := slices.Clone(f.queues), f.highest, f.ranges != nil
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.looking = false
		f.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(d.looking, 10*floorEvery)
	defer cancel()
	highest, err := readValue[int64](ctx, d, selectLastID)
	if err != nil {
		return
	}
	if full {
		if queues, err = readQueues(ctx, d, queues); err != nil {
			return
		}
	}
	ranges := f.listRanges(queues, list)
	if full {
		for i := range ranges {
			ranges[i].floor = 0
		}
	}
	tries := 1
	if full && !using { // measure again: perhaps a read was slow only because it waited for a processor
		tries = 3
	}
	var first []firstTask
	var took time.Duration
	for range tries {
		if first, took, err = readFirsts(ctx, d, ranges); err != nil {
			return
		}
		if full && took <= f.cost {
			ranges = nil
			break
		}
	}
	f.set(queues, ranges, first, before, highest, took, full)
}

// maxRanges limits the length of the statements. If the queues and jobs need more ranges, claims use no floors.
const maxRanges = 1000

// readQueues returns the given queues and all other queues with pending tasks, in sorted order.
func readQueues(ctx context.Context, d *DB, queues []string) ([]string, error) {
	slices.Sort(queues)
	for {
		gaps := make([][2]any, len(queues)+1)
		for i, queue := range queues {
			gaps[i][1], gaps[i+1][0] = queue, queue
		}
		gaps[0][0] = ""
		more, err := readRows[string](ctx, d, selectQueuesBetween, jsonText(gaps))
		if err != nil || len(more) == 0 {
			return queues, err
		}
		queues = append(queues, more...)
		slices.Sort(queues)
	}
}

// readFirsts returns the first task of each range, and the time that the server has taken.
func readFirsts(ctx context.Context, d *DB, ranges []partRange) (first []firstTask, took time.Duration, err error) {
	if first, err = readRows[firstTask](ctx, d, selectFirsts, rangesJSON(ranges)); err != nil {
		return nil, 0, err
	}
	last := len(first) - 1
	return first[:last], time.Duration(first[last].ID) * time.Microsecond, nil
}

// rangesJSON returns the ranges as the JSON array that selectFirsts and selectQueuesAbove take as their argument.
func rangesJSON(ranges []partRange) string {
	list := make([][6]any, len(ranges))
	for i, r := range ranges {
		list[i] = [6]any{r.queue, r.job, r.low, r.high, r.floor, i}
	}
	return jsonText(list)
}

// rangesJSON returns the ranges of all queues with floors as the argument of selectQueuesAbove.
func (c *claimer) rangesJSON() string {
	f := &c.floors
	f.mu.Lock()
	queues := slices.Clone(f.queues)
	f.mu.Unlock()
	return rangesJSON(f.listRanges(queues, c.jobs))
}

// sortNames sorts the names of the queues that selectQueuesAbove has found, and removes duplicates.
func (c *claimer) sortNames() {
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
}

// aboveArgs returns a statement of claimAbove and the arguments of its parts. The number of parts is a power of two, so that a connection
// prepares few statements. A part without a job selects nothing.
func (c *claimer) aboveArgs(queue string, list []ClaimJob) (args []any, text *statement) {
	n := 0
	for _, job := range list {
		for _, r := range c.floors.listRanges([]string{queue}, []ClaimJob{job}) {
			for range 2 {
				args = append(args, int64(max(job.MaxAttempts, 1)), queue, job.Job, r.low, r.high, r.floor)
			}
			n++
		}
	}
	for n == 0 || n&(n-1) != 0 {
		for range 2 {
			args = append(args, int64(1), queue, nil, int64(0), int64(0), int64(0))
		}
		n++
	}
	return args, claimAbove.Of(n)
}

// The method "set" stores the result of a look at the pending tasks. After a fast full look the list "ranges" is empty. If it is empty, or
// if it has more than maxRanges elements, claims use no floors.
func (f *floors) set(queues []string, ranges []partRange, first []firstTask, before, highest int64, took time.Duration, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.highest = highest
	if full {
		f.every = max(floorEvery, floorShare*took)
	}
	if len(ranges) == 0 || len(ranges) > maxRanges {
		f.queues, f.ranges = nil, nil
		return
	}
	if !full && f.ranges == nil { // since this look began, the method "use" has decided that claims use no floors
		return
	}
	f.queues, f.ranges = queues, raised(ranges, first, before)
}

// The function "raised" returns the ranges with higher floors. A floor is below the first task of its range, and is at most the id in the
// parameter "highest". If a range has several priorities, the priority of its first task gets a range of its own, and the floor of lower
// priorities stays as it is.
func raised(ranges []partRange, first []firstTask, highest int64) map[part][]idRange {
	of := map[part][]idRange{}
	found := map[int]firstTask{}
	for _, task := range first {
		found[int(task.At)] = task
	}
	for i, r := range ranges {
		task, some := found[i]
		if !some {
			r.floor = max(r.floor, highest)
			of[r.part] = append(of[r.part], r.idRange)
			continue
		}
		for _, piece := range splitAt([]idRange{r.idRange}, task.Priority) {
			switch {
			case piece.low > task.Priority:
				piece.floor = max(piece.floor, highest)
			case piece.low == task.Priority:
				piece.floor = max(piece.floor, min(task.ID-1, highest))
			}
			of[r.part] = append(of[r.part], piece)
		}
	}
	return of
}
