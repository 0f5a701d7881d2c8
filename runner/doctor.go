package runner

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// Disk describes the filesystem that a database is on.
type Disk = db.Disk

// Process is a process of this machine.
type Process = db.Process

// DiskOf describes the filesystem of the database at path, which need not exist.
func DiskOf(path string) Disk { return db.DiskOf(path) }

// Insecure returns an error of kind jobs.ErrPermission when somebody else than this process's user, or root, may write the database
// at path or its directory: whoever may do that can run commands as the worker's user. Nothing is opened; nil: it is safe, or not
// there. Work asks this before it runs commands, unless Options.InsecurePerms.
func Insecure(path string) error { return db.Insecure(path) }

func (r *Runner) insecure() error {
	if _, commands := r.handlers[jobs.CommandJob]; !commands || r.options.InsecurePerms || r.Server() != nil {
		return nil // on a server its rights are the server's affair
	}
	return Insecure(r.Path())
}

// sound returns an error when the file must not be worked on: somebody has changed what its own tables do, or it was left by a crash and
// is damaged.
func (r *Runner) sound(ctx context.Context) error {
	if !r.options.ForeignTriggers {
		if err := r.store.Foreign(ctx); err != nil {
			return err
		}
	}
	if r.store.Unclean() {
		return r.store.Damage(ctx)
	}
	return nil
}

// Foreign returns a problem when somebody has changed runner's own tables in the database, or added triggers or indexes to them: see
// Options.ForeignTriggers.
func (r *Runner) Foreign(ctx context.Context) error { return r.store.Foreign(ctx) }

// Integrity reads the whole file and returns what is damaged; nil: nothing. thorough compares the indexes with their tables, too.
func (r *Runner) Integrity(ctx context.Context, thorough bool) ([]string, error) {
	return r.store.Integrity(ctx, thorough)
}

// Latest returns the latest time that anybody has written into the database. One ahead of the clock tells of a clock that was set back.
func (r *Runner) Latest(ctx context.Context) (time.Time, error) { return r.store.Latest(ctx) }

// Seen returns when a worker gave a sign of life for the last time; zero: never.
func (r *Runner) Seen(ctx context.Context) (time.Time, error) { return r.store.Seen(ctx) }

// ServerInfo tells of the server that a database is on.
type ServerInfo = db.ServerInfo

// Server tells of the server that the database is on; nil: it is a file.
func (r *Runner) Server() *ServerInfo { return r.store.Server() }

// Told returns an error when a database on a server does not send this process its messages: workers then find tasks late. It waits for
// a message for so long.
func (r *Runner) Told(ctx context.Context, patience time.Duration) error {
	return r.store.Told(ctx, patience)
}

// OnServer says whether address names a database on a server, and not a file.
func OnServer(address string) bool { return db.OnServer(address) }

// Writable returns why the next write would probably fail, without trying: jobs.ErrReplaced, jobs.ErrFull or nil.
func (r *Runner) Writable() error {
	if err := r.store.Replaced(); err != nil {
		return err
	}
	if r.Server() != nil {
		return nil
	}
	if disk := db.DiskOf(r.Path()); disk.Total > 0 && disk.Free < disk.Reserve {
		return fmt.Errorf("%w: %d bytes are left", jobs.ErrFull, disk.Free)
	}
	return nil
}

// Readers lists the processes that read the database at this moment, and so keep its write-ahead log from starting afresh. Not every
// system, and not every lock, tells who it is.
func (r *Runner) Readers() []Process { return r.store.Readers() }
