package db

import (
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The end of a task affects others: its dependents are released or cancelled
// (depend.go), and its lane goes to the next task (lane.go). Every function
// that ends tasks calls afterEnd, in the transaction that writes the end.

// end is a task that has finished, or that has given up its lane without
// finishing.
type end struct {
	id    int64
	queue string
	lane  string
	state jobs.State
}

// features says which features the database uses. A transaction reads it once,
// so it needs only one query if the database uses none of them.
type features struct {
	known        bool
	dependencies bool
	limits       bool
	pauses       bool
	cursors      bool // whether the list of ended tasks has consumers (see finished.go)
}

// selectFeatures returns the features in use as bits: 1 for dependencies, 2 for
// limits, 4 for pauses, 8 for cursors. One number is read faster than four.
var selectFeatures = query(`SELECT {features}`)

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

func featuresOf(bits int64) features {
	return features{known: true, dependencies: bits&1 != 0, limits: bits&2 != 0, pauses: bits&4 != 0, cursors: bits&8 != 0}
}

// afterEnd updates the counters and the list of ended tasks, releases or
// cancels the dependents, and gives freed lanes to the next tasks. A cancelled
// dependent has ended, too. The loop appends it to ends, so a chain of any
// length needs no recursion.
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
	for i := 0; i < len(ends); i++ {
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

		more, err := t.endFollowers(e, &lanes, now)
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

// endFollowers releases the dependents of an ended task, or cancels and returns
// them.
func (t *tx) endFollowers(e end, lanes *laneSet, now time.Time) ([]end, error) {
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

// brokenText is the error of a task that is cancelled because task id did not
// complete.
func brokenText(id int64, state jobs.State) string {
	return fmt.Sprintf("task %d %s", id, state)
}
