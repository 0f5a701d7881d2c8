package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"example.com/runner/db/internal/engine"
)

// logSync limits how many of the last commits a power failure can undo with
// Options.Flash, where most commits do no fsync. Some time after a commit it
// syncs the WAL, which makes all commits up to this moment durable. So does a
// checkpoint or a commit with an fsync: the WAL then needs no other sync.
type logSync struct {
	delay time.Duration // from a commit to its sync; 0: never sync
	sync  func() error

	running sync.WaitGroup // planned syncs and syncs in progress

	mu      sync.Mutex
	durable bool        // whether each commit of the connection does an fsync itself
	timer   *time.Timer // of the planned sync; nil if none is planned
	failed  error       // of the last failed sync; nil after a commit has returned it
}

// setLevel records whether the next commits of the connection do an fsync.
func (l *logSync) setLevel(durable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable = durable
}

// committed is called after each commit, and plans a sync unless one is planned
// already. It returns the error of a sync that has failed since the last call.
func (l *logSync) committed(changed bool) error {
	if l.delay == 0 || !changed {
		return nil
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	switch {
	case l.durable:
		l.stop()
	case l.timer == nil:
		l.running.Add(1)
		l.timer = time.AfterFunc(l.delay, l.run)
	}

	err := l.failed
	l.failed = nil
	return err
}

// stop cancels the planned sync and reports whether there was one. The caller
// holds the mutex.
func (l *logSync) stop() bool {
	planned := l.timer != nil && l.timer.Stop()
	if planned {
		l.running.Done()
	}
	l.timer = nil
	return planned
}

// run does the planned sync. A commit that arrives meanwhile plans another one.
func (l *logSync) run() {
	defer l.running.Done()

	l.mu.Lock()
	l.timer = nil
	l.mu.Unlock()

	if err := l.sync(); err != nil {
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
	}
}

// close does the planned sync now, and returns the error of the last sync.
func (l *logSync) close() error {
	l.mu.Lock()
	planned := l.stop()
	l.mu.Unlock()

	l.running.Wait()
	if planned {
		return l.sync()
	}

	return l.failed
}

// syncLog syncs the WAL and its entry in the directory. Without a WAL it does
// nothing: when the last connection closes, SQLite syncs the database file and
// removes the WAL.
func (d *File) syncLog() error {
	file, err := os.OpenFile(d.logPath, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(file.Sync(), file.Close(), syncDir(filepath.Dir(d.logPath)))
	}
	if err != nil {
		return engine.FileError(err, d.logPath)
	}

	return nil
}
