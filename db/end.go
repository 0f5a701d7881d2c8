package db

import (
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The end of a task affects other tasks. Its dependents are released or cancelled (see depend.go), and its lane goes to the next task (see
// lane.go). Every function that ends tasks calls the method "ended", in the transaction that writes the end.

// cancelDependent cancels task [4] of generation [5], which depends on a task that did not complete. [1] is the outcome, and [2] and
// [3] are the time.
var cancelDependent = command(`UPDATE {tasks} SET state = 'cancelled', generation_id = generation_id + 1, outcome = ?, waits = NULL,
	finished_at = ?, updated_at = ? WHERE id = ? AND generation_id = ? AND waits = 1 RETURNING queue`)

// freeDependent releases task [3] of generation [4] when its last dependency has ended. [1] is its new state: blocked if it must wait
// for its lane. [2] is the time.
var freeDependent = command(`UPDATE {tasks} SET state = ?1, generation_id = generation_id + CASE WHEN ?1 = 'blocked' THEN 0 ELSE 1 END,
	waits = CASE WHEN ?1 = 'blocked' THEN 0 END, updated_at = ?2 WHERE id = ?3 AND generation_id = ?4 AND waits = 1`)

// end describes a task that has finished, or that has given up its lane without finishing.
type end struct {
	id    int64
	queue string
	lane  string
	state jobs.State
	// waited reports whether the task may still be paused or have open dependencies, because it was cancelled while it waited.
	waited bool
}

// features says which features the database uses. A transaction reads it once, when it first needs it. So a transaction needs only one
// query if the database uses none of the features.
type features struct {
	known        bool
	dependencies bool
	limits       bool
	pauses       bool
	cursors      bool // whether the list of ended tasks has consumers; each has a cursor (see finished.go)
}

// selectFeatures returns one number whose bits are the features in use: 1 for dependencies, 2 for limits, 4 for pauses, and
// 8 for cursors. One number is read faster than four.
var selectFeatures = query(`SELECT {features}`)

// features returns the features that are in use. It reads them once in a transaction.
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

// featuresOf converts the bits of selectFeatures to features.
func featuresOf(bits int64) features {
	return features{known: true, dependencies: bits&1 != 0, limits: bits&2 != 0, pauses: bits&4 != 0, cursors: bits&8 != 0}
}

// The method "ended" makes the changes that follow when tasks end. It adds the tasks to the counters, and releases or cancels their
// dependents. A cancelled dependent has ended, too, so the method handles it in the same way. If the list of ended tasks has a consumer,
// the method adds the tasks to this list. Finally it gives each freed lane to the next task of the lane.
func (t *tx) ended(ends []end, now time.Time) error {
	if len(ends) == 0 {
		return nil
	}
	features, err := t.features()
	if err != nil {
		return err
	}
	// Close the dependencies of all ended tasks, before the next loop releases the dependents of these tasks.
	for _, e := range ends {
		if e.waited {
			if err := t.run(deleteTaskPause, e.id); err != nil {
				return err
			}
		}
		if e.waited && features.dependencies {
			if _, err := t.exec(closeAll, e.id); err != nil {
				return err
			}
		}
	}
	counts := map[count]int{}
	var lanes laneSet
	var finished []int64
	for i := 0; i < len(ends); i++ { // the loop appends to ends, so it handles a chain of dependents of any length without recursion
		e := ends[i]
		lanes.add(e.lane)
		if !e.state.Finished() {
			continue
		}
		counts[count{e.queue, e.state}]++
		finished = append(finished, e.id)
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
	if features.cursors && len(finished) > 0 {
		if err := t.recordEnds(finished); err != nil {
			return err
		}
	}
	return t.freeLanes(lanes, now)
}

// endedFor releases the dependents of an ended task, or cancels them. It returns the cancelled tasks.
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
		if !taskspec.Releases(e.state, bool(f.AnyOutcome)) {
			var queue string
			if err := t.scan(cancelDependent, []any{brokenOutcome(brokenText(e.id, e.state)), ms, ms, f.ID, f.Generation},
				&queue); err != nil {
				return nil, fmt.Errorf("cancel task %d, which waits for %d: %w", f.ID, e.id, err)
			}
			if _, err := t.exec(closeAll, f.ID); err != nil {
				return nil, err
			}
			if err := t.run(deleteTaskPause, f.ID); err != nil {
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

// The method "free" releases a task whose dependencies have all ended.
func (t *tx) free(f follower, lanes *laneSet, now time.Time) error {
	due := f.RunAt.time()
	if f.Due {
		due = now
	}
	to := taskspec.InitialState(due, now, false, f.Lane != "") // a task with a lane is blocked until freeLanes makes it pending
	if to == jobs.Blocked {
		lanes.add(string(f.Lane))
	}
	t.released = true
	return t.one(freeDependent, string(to), now.UnixMilli(), f.ID, f.Generation)
}

// brokenOutcome returns the outcome of a task that is cancelled because of a dependency.
func brokenOutcome(text string) string {
	return jsonText(outcome{Reason: jobs.ReasonDependency, Error: text})
}

// brokenText returns the error of a task that is cancelled because task id did not complete.
func brokenText(id int64, state jobs.State) string {
	return fmt.Sprintf("task %d %s", id, state)
}
