package db

import (
	"fmt"
	"time"

	"example.com/runner/jobs"
)

// cancelDependent cancels task [4] of generation [5], which waits for one that did not complete; outcome [1], times [2], [3].
var cancelDependent = command(`UPDATE {tasks} SET state = 'cancelled', generation_id = generation_id + 1, outcome = ?, waits = NULL,
	finished_at = ?, updated_at = ? WHERE id = ? AND generation_id = ? AND waits = 1 RETURNING queue`)

// freeDependent ends the waiting of task [3], generation [4], when its last dependency has ended. [1] is its new state: blocked if
// it must wait for its lane. [2] is the time.
var freeDependent = command(`UPDATE {tasks} SET state = ?1, generation_id = generation_id + CASE WHEN ?1 = 'blocked' THEN 0 ELSE 1 END,
	waits = CASE WHEN ?1 = 'blocked' THEN 0 END, updated_at = ?2 WHERE id = ?3 AND generation_id = ?4 AND waits = 1`)

// end is a task that has left its place: it has finished, or given up its lane.
type end struct {
	id    int64
	queue string
	lane  string
	state jobs.State
	// waited: it may have waited for others when it ended.
	waited bool
}

// features are the things that order tasks or hold them back and that are in use at all. A transaction that needs to know reads
// them once, so that a database that uses none of them pays for one query.
type features struct {
	known        bool
	dependencies bool
	limits       bool
	pauses       bool
}

// selectFeatures looks at the first entry of each: 1, 2 and 4 in one number, which is read faster than three.
var selectFeatures = query(`SELECT {features}`)

// features returns what is in use. It reads that once in a transaction.
func (t *tx) features() (features, error) {
	if t.used.known {
		return t.used, nil
	}
	var bits int64
	err := t.scan(selectFeatures, nil, &bits)
	if err == nil {
		t.used = featuresOf(bits)
	}
	return t.used, err
}

// featuresOf returns what the bits of selectFeatures say.
func featuresOf(bits int64) features {
	return features{known: true, dependencies: bits&1 != 0, limits: bits&2 != 0, pauses: bits&4 != 0}
}

// ended does what follows from the end of tasks: every end passes here, in the transaction that writes it. It counts, lets those
// start that waited for them, or cancels them (and then those who waited for these), and gives their lanes to the next.
func (t *tx) ended(ends []end, now time.Time) error {
	if len(ends) == 0 {
		return nil
	}
	features, err := t.features()
	if err != nil {
		return err
	}
	for _, e := range ends { // first: nobody must be told of an end who has ended too
		if e.waited && features.dependencies {
			if _, err := t.exec(closeAll, e.id); err != nil {
				return err
			}
		}
	}
	counts := map[count]int{}
	var lanes laneSet
	for i := 0; i < len(ends); i++ { // grows while it is walked: a chain of any length, without recursion
		e := ends[i]
		lanes.add(e.lane)
		if !e.state.Finished() {
			continue
		}
		counts[count{e.queue, e.state}]++
		if !features.dependencies {
			continue
		}
		more, err := t.endedFor(e, &lanes, now)
		if err != nil {
			return err
		}
		ends = append(ends, more...)
	}
	if err := t.count(counts, now); err != nil {
		return err
	}
	return t.freeLanes(lanes, now)
}

// endedFor tells those who wait for a task that it has ended. It returns those that are cancelled because of it.
func (t *tx) endedFor(e end, lanes *laneSet, now time.Time) ([]end, error) {
	var followers []follower
	if err := t.list(&followers, selectFollowers, e.id); err != nil || len(followers) == 0 {
		return nil, err
	}
	if _, err := t.exec(closeOn, e.id); err != nil {
		return nil, err
	}
	var cancelled []end
	ms := now.UnixMilli()
	for _, f := range followers {
		if !e.state.Releases(bool(f.AnyOutcome)) {
			var queue string
			if err := t.scan(cancelDependent, []any{brokenOutcome(brokenText(e.id, e.state)), ms, ms, f.ID, f.Generation},
				&queue); err != nil {
				return nil, fmt.Errorf("cancel task %d, which waits for %d: %w", f.ID, e.id, err)
			}
			if _, err := t.exec(closeAll, f.ID); err != nil {
				return nil, err
			}
			cancelled = append(cancelled, end{id: f.ID, queue: queue, state: jobs.Cancelled})
			continue
		}
		if bool(f.Waits) {
			continue
		}
		if err := t.free(f, lanes, now); err != nil {
			return nil, err
		}
	}
	return cancelled, nil
}

// free lets a task go on that waits for nothing more.
func (t *tx) free(f follower, lanes *laneSet, now time.Time) error {
	to := jobs.InitialState(f.RunAt.time(), now, false, f.Lane != "") // its lane decides when all that happened has been written
	if to == jobs.Blocked {
		lanes.add(string(f.Lane))
	}
	t.moved = true
	return t.one(freeDependent, string(to), now.UnixMilli(), f.ID, f.Generation)
}

// brokenOutcome is the outcome of such a task.
func brokenOutcome(text string) string {
	return jsonText(outcome{Reason: jobs.ReasonDependency, Error: text})
}

// brokenText is the error of a task that is cancelled because another did not complete.
func brokenText(id int64, state jobs.State) string {
	return fmt.Sprintf("task %d %s", id, state)
}
