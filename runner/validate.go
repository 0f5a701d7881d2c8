package runner

import (
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// invalidValue returns the error of a value that can only be a mistake of the
// program.
func invalidValue(hint, what string, args ...any) error {
	return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf(what, args...), Hint: hint}
}

const orDefault = "0 for the default, or a positive number"

// validate checks the options, after their defaults were set.
func (o *Options) validate() error {
	if err := db.ValidPrefix(o.Prefix); err != nil {
		return err
	}

	switch {
	case o.MaxBytes != 0 && o.MaxBytes < 1<<20:
		return invalidValue("at least 1 MiB, or 0 for no bound", "option MaxBytes is too small: %d", o.MaxBytes)
	case o.DropOldest && o.MaxBytes == 0:
		return invalidValue("a size in MaxBytes, too", "option DropOldest has no effect without MaxBytes")
	case o.BusyTimeout < 0:
		return invalidValue(orDefault, "option BusyTimeout is negative: %v", o.BusyTimeout)
	case o.Sync < SyncFull || o.Sync > SyncFlash:
		return invalidValue("SyncFull, SyncNormal or SyncFlash", "unknown level %d of Sync", o.Sync)
	case o.WriteEvery < 0:
		return invalidValue(orDefault, "option WriteEvery is negative: %v", o.WriteEvery)
	}

	return nil
}

// validate checks the options, after their defaults were set. write is
// Options.WriteEvery.
func (o *WorkOptions) validate(write time.Duration) error {
	switch {
	case o.Concurrency < 0:
		return invalidValue(orDefault, "option Concurrency is negative: %d", o.Concurrency)
	case o.Lease < shortestLease:
		return invalidValue("at least 5s", "lease %v is too short", o.Lease)
	case write > o.Lease/2:
		return invalidValue(fmt.Sprintf("a time up to half of the lease, which is %v", o.Lease), "invalid WriteEvery %v", write)
	}

	return validQueueMax(o.Queues)
}

// validQueueMax checks WorkOptions.Queues.
func validQueueMax(queues []jobs.QueueMax) error {
	seen := map[string]bool{}
	for _, q := range queues {
		if err := taskspec.ValidQueue(q.Name); err != nil {
			return err
		}
		switch {
		case q.Max < 0:
			return invalidValue("0 for all slots, or a positive number", "Max of queue %s is negative: %d", q.Name, q.Max)
		case seen[q.Name]:
			return invalidValue("one entry for each queue", "queue %s comes twice in Queues", q.Name)
		}

		seen[q.Name] = true
	}

	return nil
}
