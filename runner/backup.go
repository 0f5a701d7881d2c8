package runner

import (
	"context"
	"io"
	"os"
)

// Backup writes a consistent copy of the database to a file, under load: every task that was enqueued before it began is in it. The
// file appears complete or not at all, readable for this user alone, and is on the disk when Backup returns its size. A file that
// exists is jobs.ErrConflict, unless replace; the database itself, one in use, or what is not a regular file, always.
func (r *Runner) Backup(ctx context.Context, to string, replace bool) (bytes int64, err error) {
	return r.store.Backup(ctx, to, replace)
}

// BackupTo writes a consistent copy of the database to w. It is made as a file in the directory beside the database first.
func (r *Runner) BackupTo(ctx context.Context, w io.Writer) (bytes int64, err error) {
	path, err := r.store.BackupFile(ctx)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.Copy(w, file)
}
