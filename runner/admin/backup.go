package admin

import (
	"cmp"
	"context"
	"io"
	"os"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// BackupOptions say where a backup goes: to Path or to Writer.
type BackupOptions struct {
	Path    string    // file to create
	Writer  io.Writer // in place of Path; the copy is first made beside the database file (app.db: in the directory app.db.d)
	Replace bool      // whether the file at Path may exist; the backup then replaces it
}

// Backup writes a consistent copy of the database, and returns its size when
// the copy is complete. It has every task that was enqueued before the call;
// other processes can write meanwhile. A file is never incomplete, it is on the
// disk when Backup returns, and only this user can read it. The error is
// jobs.ErrInvalid without a path and a writer, jobs.ErrNoDatabase if the
// directory does not exist, jobs.ErrPermission if Backup cannot create a file
// there, and jobs.ErrConflict if the file exists and may not be replaced.
//
// Replace never replaces the database itself, another database in use, or
// something that is not a regular file: the error is jobs.ErrConflict, too.
func Backup(ctx context.Context, r *runner.Runner, o BackupOptions) (bytes int64, err error) {
	store := db.Of(r)
	switch {
	case store.IsClosed():
		return 0, jobs.ErrClosed
	case o.Writer == nil:
		bytes, err = store.Backup(ctx, o.Path, o.Replace)
	case o.Path != "":
		return 0, &jobs.Error{Kind: jobs.ErrInvalid, What: "a backup goes to a path or to a writer, not to both"}
	default:
		bytes, err = copyTo(ctx, store, o.Writer)
	}

	if err == nil {
		store.NoteBackup()
	} else if ctx.Err() != nil {
		err = context.Cause(ctx) // err only says that ctx has ended
	}

	return bytes, err
}

func copyTo(ctx context.Context, store *db.DB, w io.Writer) (int64, error) {
	path, err := store.BackupFile(ctx)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)

	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}

	bytes, err := io.Copy(w, file)
	return bytes, cmp.Or(err, file.Close())
}
