package db

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// The table metadata_keys lists the metadata keys that have an index; IndexMetadata changes this list. The table metadata_index has a row
// for each task and each of these keys, if the task has a text with that key. In a file without indexed keys, both tables are empty.
//
// Invariants:
//   - While a key is in metadata_keys, every transaction that gives a task a text with this key adds a row to the index. In a file, the
//     write lock ensures that no such transaction misses a new key. On a server, a transaction that reads metadata_keys holds a lock on
//     that table until it ends, and IndexMetadata changes the keys under an exclusive lock. A transaction that still reads an old snapshot
//     may not see a new key, so it adds rows for all keys.
//   - A key is marked as filled only after all older tasks have their rows. If a key is removed and added again, its index is built anew.
//     The column build identifies each such index, so that a call that has filled the old index does not mark the new one as filled.
//   - A row may be out of date, because a task may get other texts later. So a search also compares the texts of each task that it finds in
//     the index.

// indexedText shortens the text in the next parameter to the part that the index contains.
const indexedText = `substr(CAST(? AS text), 1, 100)`

// selectIDs lists the tasks whose row in the index has key [1] and the first 100 characters of the text [2].
var selectIDs = query(`SELECT task_id FROM {metadata_index} WHERE key = CAST(? AS text) AND value = ` + indexedText)

// selectKeys lists the indexed keys. selectIndexed lists them for a transaction that writes. If it returns an empty key, the transaction
// must treat all keys as indexed.
var (
	selectKeys    = query(`SELECT key, build, filled FROM {metadata_keys} ORDER BY key`)
	selectIndexed = query(`SELECT key FROM {metadata_keys} UNION ALL SELECT '' WHERE {old_snapshot}`)
)

// addKey adds key [1] with an empty index, whose column build is [2]. removeKey removes key [1]. setFilled records that the index of key
// [1] has the rows of all tasks, if the column build still has the value [2].
var (
	addKey    = command(`INSERT INTO {metadata_keys} (key, build, filled) VALUES (?, ?, 0)`)
	removeKey = command(`DELETE FROM {metadata_keys} WHERE key = ?`)
	setFilled = command(`UPDATE {metadata_keys} SET filled = 1 WHERE key = ? AND build = ?`)
)

// indexText adds a row for task [3], whose metadata has the text [2] with the key [1]. fillIndexes adds the rows of the tasks whose ids are
// greater than [1] and at most [2] to the indexes that are not filled yet. deleteTexts deletes the rows of one task.
var (
	indexText = command(`INSERT INTO {metadata_index} (key, value, task_id)
	VALUES (CAST(? AS text), ` + indexedText + `, {bigint_param}) ON CONFLICT (key, value, task_id) DO NOTHING`)
	fillIndexes = command(`INSERT INTO {metadata_index} (key, value, task_id)
	SELECT named.key, substr(CAST(tasks.options -> 'metadata' ->> named.key AS text), 1, 100), tasks.id
	FROM {tasks} CROSS JOIN {metadata_keys} AS named
	WHERE tasks.id > ? AND tasks.id <= ? AND named.filled = 0 AND (tasks.options -> 'metadata' ->> named.key) IS NOT NULL
ON CONFLICT (key, value, task_id) DO NOTHING`)
	deleteTexts = command(`DELETE FROM {metadata_index} WHERE task_id = ?`)
)

// anyText reports whether the index has rows. nextIndexed returns the first key after [1] that has rows, or an empty text. clearIndex
// deletes up to [2] rows of key [1], unless the key is indexed.
var (
	anyText     = query(`SELECT count(*) FROM (SELECT 1 FROM {metadata_index} LIMIT 1) AS part`)
	nextIndexed = query(`SELECT coalesce(min(key), '') FROM {metadata_index} WHERE key > ?`)
	clearIndex  = command(`DELETE FROM {metadata_index} WHERE (key, value, task_id) IN
	(SELECT key, value, task_id FROM {metadata_index} AS old WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM {metadata_keys} WHERE key = ?1)
	LIMIT 0 + ?2)`)
)

// selectNewest returns the highest id of a task. selectPart finds the [2] tasks that follow the id [1], and returns the id of the last one.
var (
	selectNewest = query(`SELECT coalesce(max(id), 0) FROM {tasks}`)
	selectPart   = query(`SELECT coalesce(max(id), 0) FROM (SELECT id FROM {tasks} WHERE id > ? ORDER BY id LIMIT 0 + ?) AS part`)
)

const (
	indexMost = 1000                  // maximum number of tasks or rows in one transaction of IndexMetadata
	lockPause = 50 * time.Millisecond // time between two attempts to lock metadata_keys
)

// indexedKeys holds what a transaction has read about indexed keys.
type indexedKeys struct {
	known bool
	keys  []string // indexed keys; an empty string stands for all keys

	rowsKnown, rows bool // rows: whether the index has rows; rowsKnown: whether the field "rows" is set
}

// The method "indexes" reports whether some of the texts of a task may need rows in the index. A transaction reads the indexed keys only
// once, for the first task with metadata.
func (t *tx) indexes(texts map[string]string) (bool, error) {
	if len(texts) == 0 {
		return false, nil
	}
	if !t.indexed.known {
		if err := t.list(&t.indexed.keys, selectIndexed); err != nil {
			return false, err
		}
		t.indexed.known = true
	}
	return len(t.indexed.keys) > 0, nil
}

// indexTexts adds the texts of a task to the index.
func (t *tx) indexTexts(id int64, texts map[string]string) error {
	if some, err := t.indexes(texts); err != nil || !some {
		return err
	}
	all := slices.Contains(t.indexed.keys, "")
	for key, text := range texts {
		if !all && !slices.Contains(t.indexed.keys, key) {
			continue
		}
		if err := t.later(indexText, key, text, id); err != nil {
			return err
		}
		t.indexed.rowsKnown, t.indexed.rows = true, true
	}
	return nil
}

// indexAgain replaces the rows of a task whose texts were replaced. If the task has no texts now, its old rows stay until it is deleted.
func (t *tx) indexAgain(id int64, texts map[string]string) error {
	if some, err := t.indexes(texts); err != nil || !some {
		return err
	}
	if err := t.run(deleteTexts, id); err != nil {
		return err
	}
	return t.indexTexts(id, texts)
}

// indexedKey is a row of metadata_keys.
type indexedKey struct {
	Key    string  `db:"key"`
	Build  string  `db:"build"`
	Filled boolean `db:"filled"`
}

// IndexMetadata makes an index of metadata for each of the keys, which must be valid and distinct, and removes the indexes of all other
// keys. It returns when the indexes are filled. Several calls may fill the same index at the same time.
func (d *DB) IndexMetadata(ctx context.Context, keys []string) error {
	unfilled, err := d.setKeys(ctx, keys)
	if err == nil {
		err = d.clearIndexes(ctx)
	}
	if err != nil || len(unfilled) == 0 {
		return err
	}
	if err := d.fillIndexes(ctx); err != nil {
		return err
	}
	return d.update(ctx, full, func(t *tx) error {
		t.wakeups = false
		for _, k := range unfilled {
			n, err := t.exec(setFilled, k.Key, k.Build)
			if err == nil && n == 0 {
				err = &jobs.Error{Kind: jobs.ErrConflict, What: "another call of IndexMetadata has removed the key " + k.Key,
					Hint: "let all programs index the same keys"}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// setKeys adds and removes rows of metadata_keys until it has exactly these keys. It returns the rows that are not filled.
func (d *DB) setKeys(ctx context.Context, keys []string) (unfilled []indexedKey, err error) {
	rows, err := readRows[indexedKey](ctx, d, selectKeys)
	for locked := false; err == nil && !locked && changesKeys(rows, keys); {
		locked = true
		err = d.updateAlone(ctx, full, func(t *tx) (err error) {
			t.wakeups = false
			if err := d.engine.LockKeys(querier{t}); err != nil {
				locked = !d.engine.Busy(err)
				return err
			}
			rows, err = t.setKeys(keys)
			return err
		})
		if !locked {
			err = pause(ctx, lockPause)
		}
	}
	return slices.DeleteFunc(rows, func(k indexedKey) bool { return bool(k.Filled) }), err
}

// pause waits for the duration d. It returns the cause of ctx if ctx ends meanwhile.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// changesKeys reports whether the keys of the rows differ from the given keys.
func changesKeys(rows []indexedKey, keys []string) bool {
	return len(rows) != len(keys) || slices.ContainsFunc(rows, func(k indexedKey) bool { return !slices.Contains(keys, k.Key) })
}

// setKeys adds and removes rows of metadata_keys, and returns all rows.
func (t *tx) setKeys(keys []string) (rows []indexedKey, err error) {
	var old []indexedKey
	if err := t.list(&old, selectKeys); err != nil {
		return nil, err
	}
	for _, k := range old {
		if !slices.Contains(keys, k.Key) {
			if err := t.run(removeKey, k.Key); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range keys {
		if !slices.ContainsFunc(old, func(k indexedKey) bool { return k.Key == key }) {
			if err := t.run(addKey, key, NewWorkerID()); err != nil {
				return nil, err
			}
		}
	}
	err = t.list(&rows, selectKeys)
	return rows, err
}

// clearIndexes deletes the rows of keys that are not indexed any more.
func (d *DB) clearIndexes(ctx context.Context) error {
	keys, err := readRows[indexedKey](ctx, d, selectKeys)
	if err != nil {
		return err
	}
	for key := ""; ; {
		if key, err = readValue[string](ctx, d, nextIndexed, key); err != nil || key == "" {
			return err
		}
		if slices.ContainsFunc(keys, func(k indexedKey) bool { return k.Key == key }) {
			continue
		}
		for n := int64(indexMost); n == indexMost; {
			if n, err = updateAs(ctx, d, normal, func(t *tx) (int64, error) {
				t.wakeups = false
				return t.exec(clearIndex, key, indexMost)
			}); err != nil {
				return err
			}
		}
	}
}

// fillIndexes adds the existing tasks to the indexes that are not filled yet.
func (d *DB) fillIndexes(ctx context.Context) error {
	newest, err := readValue[int64](ctx, d, selectNewest)
	if err != nil {
		return err
	}
	for after := int64(math.MinInt64); after < newest; {
		upTo, err := readValue[int64](ctx, d, selectPart, after, indexMost)
		if err != nil {
			return err
		}
		// If the tasks above "after" were deleted meanwhile, selectPart returns 0. Then go on with the next id, so that the loop ends.
		upTo = max(upTo, after+1)
		if err := d.update(ctx, normal, func(t *tx) error {
			t.wakeups = false
			return t.run(fillIndexes, after, upTo)
		}); err != nil {
			return err
		}
		after = upTo
	}
	return nil
}

// filledKeys returns those metadata keys of a filter that have an index with the rows of all tasks. The value of a key in the map is the
// random id of its index, from the column "build".
func (d *DB) filledKeys(ctx context.Context, f jobs.Filter) (map[string]string, error) {
	rows, err := readRows[indexedKey](ctx, d, selectKeys)
	builds := map[string]string{}
	for _, k := range rows {
		if _, ok := f.Metadata[k.Key]; ok && bool(k.Filled) {
			builds[k.Key] = k.Build
		}
	}
	return builds, err
}

// search calls the function "read" with those metadata keys of a filter that have a filled index. If such an index is removed or built anew
// during this call, the result may be incomplete. So search then calls the function once more, without keys.
func search[T any](ctx context.Context, d *DB, f jobs.Filter, read func(indexed []string) (T, error)) (value T, err error) {
	if len(f.Metadata) == 0 {
		return read(nil)
	}
	before, err := d.filledKeys(ctx, f)
	if err != nil {
		return value, err
	}
	value, err = read(slices.Sorted(maps.Keys(before)))
	if err != nil || len(before) == 0 {
		return value, err
	}
	after, err := d.filledKeys(ctx, f)
	if err == nil && !maps.Equal(before, after) {
		return read(nil)
	}
	return value, err
}
