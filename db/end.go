package db

import (
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The end of a task affects other tasks. Its dependents are released or cancelled (see depend.go), and its lane goes to the next task (see
// lane.go). Every function that ends tasks calls afterEnd, in the transaction that writes the end.

// end describes a task that has finished, or that has given up its lane without finishing.
type end struct {
	id    int64
	queue string
	lane  string
	state jobs.State
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

// afterEnd makes the changes that follow when tasks end. It adds the tasks to the counters, and releases or cancels their
// dependents. A cancelled dependent has ended, too, so afterEnd handles it in the same way. If the list of ended tasks has a consumer,
// the method adds the tasks to this list. Finally it gives each freed lane to the next task of the lane.
func (t *tx) afterEnd(ends []end, now time.Time) error {
	if len(ends) == 0 {
		return nil
	}
	features, err := t.features()
	if err != nil {
		return err
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
	for _, f := range followers {
		if !taskspec.Releases(e.state, bool(f.AnyOutcome)) {
			c, err := t.cancelWaiting(f.ID, jobs.ReasonDependency, brokenText(e.id, e.state), now)
			if err != nil {
				return nil, fmt.Errorf("cancel task %d, which waits for %d: %w", f.ID, e.id, err)
			}
			cancelled = append(cancelled, c)
			continue
		}
		if bool(f.Waits) {
			continue
		}
		if err := t.release(f.waitingTask, lanes, now); err != nil {
			return nil, err
		}
	}
	return cancelled, nil
}

// brokenText returns the error of a task that is cancelled because task id did not complete.
func brokenText(id int64, state jobs.State) string {
	return fmt.Sprintf("task %d %s", id, state)
}
