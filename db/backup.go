package db

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/jobs"
)

// backupMark is a file beside the database. It was modified when the last
// backup was made.
const backupMark = "last-backup"

// NoteBackup records that a backup was made now. It ignores errors, since a
// user who can only read the database can make backups, too.
func (d *DB) NoteBackup() {
	path := filepath.Join(d.Dir(), backupMark)
	// Remove the old file first: it may belong to another user, so that this
	// process cannot write to it.
	if d.MakeDir() == nil && (os.Remove(path) == nil || !exists(path)) {
		if file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil { // O_EXCL follows no link
			file.Close()
		}
	}
}

// LastBackup returns the time of the last backup, or the zero time if none was
// recorded.
func (d *DB) LastBackup() time.Time {
	info, err := os.Stat(filepath.Join(d.Dir(), backupMark))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Restored is the result of Restore.
type Restored = sqlite.Restored

// Restore puts a copy of the backup at from in the place of the database at
// path, which need not exist. It fails with ErrConflict while a process has the
// database open, and keeps the old database under another name.
func Restore(ctx context.Context, path, from string, o Options, now time.Time) (Restored, error) {
	if address := ParseAddress(path); !address.LocalFile() {
		return Restored{}, &jobs.Error{Kind: jobs.ErrInvalid, What: "a database on a server is restored by the server's own tools",
			Why: []string{address.String()}, Hint: "psql -v ON_ERROR_STOP=1 <DUMP, with the dump of pg_dump"}
	}
	return sqlite.Restore(ctx, path, from, o, now)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
