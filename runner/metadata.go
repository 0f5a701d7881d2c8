package runner

import (
	"context"
	"fmt"
	"slices"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// IndexMetadata makes an index for each of these metadata keys, and removes the indexes of all other keys. So IndexMetadata without keys
// removes all indexes. By default no key is indexed. If Filter.Metadata has an indexed key, a search reads only the tasks whose metadata
// has the given text at this key. Any other search by metadata reads all tasks that match the rest of its Filter. Indexes do not change the
// result of a search.
//
// The indexes are part of the database, so they apply to the tasks and searches of all programs. IndexMetadata is idempotent: call it when
// the program starts, in all programs with the same keys. A call that changes nothing reads a few rows. Each indexed key costs two short
// rows for each task that has a text with this key, and the time to write them. Tasks without metadata cost nothing.
//
// IndexMetadata adds the existing tasks to a new index in transactions of at most 1000 tasks, so other calls and workers can write
// meanwhile. Searches use the index as soon as all tasks are in it, and then IndexMetadata returns. If a call is interrupted, the next call
// completes the index. On PostgreSQL, IndexMetadata first waits for transactions in progress that have added tasks with metadata.
//
// IndexMetadata accepts at most 32 keys. It returns jobs.ErrInvalid for an invalid key, and for more than 32 keys. If another call removes
// one of the keys meanwhile, IndexMetadata returns jobs.ErrConflict. When ctx ends, it returns context.Cause(ctx). IndexMetadata is safe
// for concurrent use.
func (r *Runner) IndexMetadata(ctx context.Context, keys ...string) error {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(keys) > taskspec.MaxMetadataKeys {
		return fmt.Errorf("%w: %d keys of metadata; at most %d", jobs.ErrInvalid, len(keys), taskspec.MaxMetadataKeys)
	}
	for _, key := range keys {
		if err := taskspec.ValidMetadataKey(key); err != nil {
			return err
		}
	}
	return r.store.IndexMetadata(ctx, keys)
}
