package db

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// With Options.MaxBytes, whoever adds a task keeps the file within its bound:
// in the same transaction, it first deletes the oldest finished tasks, whatever
// their age. So the bound holds without a worker, and nothing watches the file.
// SQLite uses the pages of deleted tasks again, so only the pages in use count,
// and the file grows no further. Nothing is read more often than once in a
// millisecond. While the file is within its bound, that takes 7 µs.
//
// A transaction frees what it adds, and up to shrinkStep more, so that it holds
// the write lock for a limited time: a file that was longer before shrinks step
// by step. 1 MiB of tiny tasks are 7,500, whose deletion takes 0.2 s.

// selectOldest lists up to [5] finished tasks that are not needed, those that
// ended first come first. Index: tasks_finished. selectOldestWaiting lists up
// to [3] waiting tasks by id. Both pass over the tasks of this transaction.
var (
	selectOldest        = query(`SELECT ` + oldColumns + notOwn + oldOrder)
	selectOldestWaiting = query(`SELECT id, 0 AS finished_at, ` + taskBytes + ` AS bytes FROM {tasks}
	WHERE id > 0 AND {unindexed}state <> 'running' AND {unindexed}finished_at IS NULL` + notOwn + ` ORDER BY id LIMIT 0 + ?`)
)

const notOwn = ` AND {unindexed}id < ? AND id NOT IN (SELECT CAST(value AS bigint) FROM {json_each})`

const (
	freedShare = 64      // at least this part of MaxBytes is freed at once, so that few transactions delete
	shrinkStep = 1 << 20 // bytes that a transaction frees beyond what it adds, while the file is over its bound
	maxStuck   = 10      // rows that can't be deleted or cancelled; with more, the database is at fault
)

// room is what a transaction knows about the room that it makes.
type room struct {
	bytes  int64   // what the file may use, at least MaxBytes; 0 if not measured yet
	spared []int64 // ids of tasks that are neither deleted nor cancelled
	stuck  int     // how many of these can't be
}

// isMeasured reports whether the file has no bound, or was within it less than
// a millisecond ago.
func (d *DB) isMeasured() bool {
	return d.options.MaxBytes == 0 || isRecent(&d.measuredAt)
}

// spare keeps tasks from being deleted or cancelled by makeRoom: the call
// returns them, or its tasks depend on them.
func (t *tx) spare(ids ...int64) {
	if t.db.options.MaxBytes > 0 {
		t.room.spared = append(t.room.spared, ids...)
	}
}

// makeRoom makes room for another task, whose values have size bytes, and
// reports whether it has deleted or cancelled others. It returns an error of
// kind ErrFull if the disk is full, or if the file is and nothing is left that
// makeRoom may delete.
func (t *tx) makeRoom(size int, now time.Time) (freed bool, err error) {
	if err := t.checkSpace(); err != nil || t.db.isMeasured() {
		return false, err
	}
	if err := t.inserts.flush(false); err != nil {
		return false, err
	}

	bound := t.db.options.MaxBytes
	for {
		used, err := t.db.engine.Used(querier{t})
		if err != nil {
			return freed, err
		}
		if t.room.bytes == 0 {
			t.room.bytes = max(bound, used-shrinkStep)
		}

		used += int64(size)
		if used <= t.room.bytes {
			if used <= bound {
				t.db.recordSize()
			}
			return freed, nil
		}

		n, err := t.free(used-t.room.bytes, now)
		if err != nil {
			return freed, err
		}
		if n == 0 {
			return freed, &jobs.Error{Kind: jobs.ErrFull, Code: errcode.FileBound, What: "the database has its full size: " + t.db.path,
				Why: []string{
					fmt.Sprintf("its unfinished tasks and the new ones take %d MiB; Options.MaxBytes allows %d MiB",
						(used-1)>>20+1, bound>>20),
					"nothing was written",
				},
				Hint: "again when some of its tasks have finished"}
		}

		freed = true
	}
}

// free deletes finished tasks of about so many bytes. If none is left, it
// cancels waiting tasks with Options.DropOldest, for the next call to delete:
// more than these bytes, so that the program still sees the others. It returns
// how many tasks it has dealt with.
func (t *tx) free(bytes int64, now time.Time) (int, error) {
	share := min(t.db.options.MaxBytes/freedShare, shrinkStep)
	bytes = max(bytes, share)
	first, spared := cmp.Or(t.firstID, math.MaxInt64), jsonText(append([]int64{}, t.room.spared...))
	most := min((bytes+share)/1000+1, maxPruned) // taskBytes is at least 1000

	var list []oldTask
	err := t.list(&list, selectOldest, 0, int64(math.MaxInt64), first, spared, most)
	run := t.pruneAll
	if err == nil && len(list) == 0 && t.db.options.DropOldest {
		bytes += share
		err = t.list(&list, selectOldestWaiting, first, spared, most)
		run = func(list []oldTask) error { return t.drop(list, now) }
	}
	if err != nil || len(list) == 0 {
		return 0, err
	}

	list = atMost(list, bytes)
	return len(list), t.tryAll(list, run)
}

// pruneAll deletes all tasks of a list.
func (t *tx) pruneAll(list []oldTask) error {
	n, err := t.prune(list, math.MaxInt64)
	if err == nil && n < len(list) {
		err = fmt.Errorf("%d of %d tasks deleted", n, len(list))
	}
	return err
}

// drop cancels waiting tasks.
func (t *tx) drop(list []oldTask, now time.Time) error {
	ends := make([]end, 0, len(list))
	for _, task := range list {
		e, err := t.cancelWaiting(task.ID, jobs.ReasonCancelled, "dropped: the database has its full size", now)
		if err != nil {
			return err
		}
		ends = append(ends, e)
	}
	return t.afterEnd(ends, now)
}

// tryAll calls run for a list of tasks. If that fails, tryAll undoes it and
// tries each half. So a row that can't be deleted or cancelled, such as one
// that plain SQL has damaged, doesn't keep the others; it's spared.
func (t *tx) tryAll(list []oldTask, run func([]oldTask) error) error {
	if err := t.run(savepoint); err != nil {
		return err
	}
	err := run(list)
	if err != nil {
		// After some errors SQLite has rolled back the whole transaction, and
		// there is no savepoint any more.
		if undo := t.run(rollBackToIt); undo != nil {
			return err
		}
	}
	if err := t.run(freeSavepoint); err != nil {
		return err
	}

	switch half := len(list) / 2; {
	case err == nil:
		return nil
	case half > 0:
		if err := t.tryAll(list[:half], run); err != nil {
			return err
		}
		return t.tryAll(list[half:], run)
	}

	id := list[0].ID
	if t.room.stuck++; t.room.stuck > maxStuck {
		return fmt.Errorf("task %d: %w", id, err)
	}
	t.spare(id)

	return nil
}
