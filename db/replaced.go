package db

import (
	"os"

	"example.com/runner/jobs"
)

// A database that is removed, moved or replaced under those who have it open goes on working for them, and what they write is lost
// with the old file; with a new log beside the old file, or the other way round, both are ruined. So each write asks first whether
// the path still leads to the files that are open. That costs two calls of the system (2 µs).

// Replaced returns an error of kind ErrReplaced when the path no longer leads to the file that was opened, or to its log. A server stays what it is.
func (d *DB) Replaced() error {
	if d.server != nil {
		return nil
	}
	info, err := os.Stat(d.path)
	if err == nil && identify(info) == d.id {
		log := d.log.Load()
		if log == nil {
			return nil
		}
		if info, err = os.Stat(d.path + "-wal"); err == nil && identify(info) == *log {
			return nil
		}
	}
	return &jobs.Problem{Kind: jobs.ErrReplaced, What: "database was replaced or removed: " + d.path,
		Why: []string{"it, or its log, is no longer the file that was opened"}, Err: err}
}

// knowLog takes note of the log. SQLite keeps it for as long as anybody has the database open.
func (d *DB) knowLog() {
	if info, err := os.Stat(d.path + "-wal"); err == nil {
		d.log.Store(new(identify(info)))
	}
}
