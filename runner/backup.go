package runner

import (
	"context"
	"io"
	"os"

	"example.com/runner/jobs"
)

// Backup writes a consistent copy of the database to a file, and returns the
// size of the copy when it is on the disk. Other processes can write to the
// database during the backup. The copy has every task that was enqueued before
// Backup began. The new file is never incomplete, and only this user can read
// it. The error is jobs.ErrConflict if the file exists and replace is false.
// Even if replace is true, the error is jobs.ErrConflict if the file is the
// database itself, another database in use, or not a regular file. The error is
// jobs.ErrInvalid for an empty path, jobs.ErrNoDatabase if the directory does
// not exist, and jobs.ErrPermission if Backup cannot create a file there.
func (r *Runner) Backup(ctx context.Context, to string, replace bool) (bytes int64, err error) {
	if r.isClosed() {
		return 0, jobs.ErrClosed
	}
	if bytes, err = r.store.Backup(ctx, to, replace); err == nil {
		r.store.NoteBackup()
	}
	return bytes, causeOf(ctx, err)
}

// causeOf returns the cause of ctx if err is not nil and ctx has ended, because
// err then only says that ctx has ended. Otherwise it returns err.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// BackupTo writes a consistent copy of the database to w. It first makes a
// temporary copy beside the database file: for app.db, in the directory
// app.db.d. The error is jobs.ErrInvalid if w is nil.
func (r *Runner) BackupTo(ctx context.Context, w io.Writer) (bytes int64, err error) {
	if w == nil {
		return 0, invalidValue("a writer, such as an open file", "the writer is nil")
	}
	if r.isClosed() {
		return 0, jobs.ErrClosed
	}

	path, err := r.store.BackupFile(ctx)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	defer os.Remove(path)

	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()

	if bytes, err = io.Copy(w, file); err == nil {
		r.store.NoteBackup()
	}

	return bytes, err
}
