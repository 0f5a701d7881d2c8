package db

import (
	"fmt"
	"math"
	"time"

	"example.com/runner/jobs"
)

// With Options.MaxBytes, whoever adds a task keeps the file within its bound:
// in the same transaction, it first deletes the oldest finished tasks, whatever
// their age. So the bound holds without a worker, and nothing watches the file.
// SQLite uses the pages of deleted tasks again, so only the pages in use count,
// and the file grows no further. Nothing is read more often than once in a
// millisecond. While the file is within its bound, that takes 7 µs.

// selectOldest lists up to [1] finished tasks that are not needed, those that
// ended first come first. Index: tasks_finished. selectOldestWaiting lists up
// to [1] waiting tasks by id.
var (
	selectOldest        = query(`SELECT ` + oldColumns + oldOrder)
	selectOldestWaiting = query(`SELECT id, 0 AS finished_at, ` + taskBytes + ` AS bytes FROM {tasks}
	WHERE id > 0 AND {unindexed}state <> 'running' AND {unindexed}finished_at IS NULL ORDER BY id LIMIT 0 + ?`)
)

// freedShare is the least part of MaxBytes that is freed at once, so that few
// transactions delete.
const freedShare = 64

// isMeasured reports whether the file has no bound, or was within it less than
// a millisecond ago.
func (d *DB) isMeasured() bool {
	return d.options.MaxBytes == 0 || isRecent(&d.measuredAt)
}

// makeRoom makes room for another task. It returns an error of kind ErrFull if
// the disk or the file is full. Each call deletes more than the caller may add,
// or nothing is left to delete: so the file shrinks to its bound step by step.
func (t *tx) makeRoom(now time.Time) error {
	if err := t.checkSpace(); err != nil || t.db.isMeasured() {
		return err
	}

	used, err := t.db.engine.Used(querier{t})
	bound := t.db.options.MaxBytes
	if err != nil || used <= bound {
		if err == nil {
			t.db.recordSize()
		}
		return err
	}
	if err := t.inserts.flush(false); err != nil {
		return err
	}

	free := max(used-bound, bound/freedShare)
	n, err := t.pruneOldest(free)
	if err == nil && n == 0 && t.db.options.DropOldest {
		n, err = t.dropOldest(free, now)
	}
	if err == nil && n == 0 {
		err = &jobs.Error{Kind: jobs.ErrFull, What: "the database has its full size: " + t.db.path,
			Why: []string{
				fmt.Sprintf("the tasks that have not finished take %d MiB; Options.MaxBytes allows %d MiB", used>>20, bound>>20),
				"nothing was written",
			},
			Hint: "again when some of its tasks have finished"}
	}

	return err
}

// pruneOldest deletes finished tasks of about so many bytes.
func (t *tx) pruneOldest(bytes int64) (int, error) {
	var list []oldTask
	if err := t.list(&list, selectOldest, 0, int64(math.MaxInt64), maxPruned); err != nil || len(list) == 0 {
		return 0, err
	}
	return t.prune(atMost(list, bytes), math.MaxInt64)
}

// dropOldest cancels waiting tasks of about so many bytes. Later calls of
// pruneOldest delete them, so that the program can still see which ones were
// dropped last.
func (t *tx) dropOldest(bytes int64, now time.Time) (int, error) {
	var list []oldTask
	if err := t.list(&list, selectOldestWaiting, maxPruned); err != nil {
		return 0, err
	}

	list = atMost(list, bytes)
	ends := make([]end, 0, len(list))
	for _, task := range list {
		e, err := t.cancelWaiting(task.ID, jobs.ReasonCancelled, "dropped: the database has its full size", now)
		if err != nil {
			return 0, err
		}
		ends = append(ends, e)
	}

	return len(ends), t.afterEnd(ends, now)
}
