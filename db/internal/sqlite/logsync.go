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

// With Options.Flash, most commits do no fsync. logSync limits how many of the last commits a power failure can undo. Some time after a
// commit it syncs the write-ahead log, which makes all commits up to this moment durable. A checkpoint or a commit with an fsync has the
// same effect, so the log then needs no other sync.
type logSync struct {
	delay time.Duration // time from a commit to its sync; 0 if logSync never syncs
	sync  func() error  // function that syncs the write-ahead log

	running sync.WaitGroup // counts planned syncs and syncs in progress

	mu      sync.Mutex
	durable bool        // whether each commit of the connection does an fsync itself
	timer   *time.Timer // timer of the planned sync; nil if no sync is planned
	failed  error       // error of the last failed sync; nil after a commit has returned it
}

// setLevel records whether the next commits of the connection do an fsync.
func (l *logSync) setLevel(durable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durable = durable
}

// committed is called after each commit. It plans a sync unless one is planned already. It returns the error of a sync that has failed
// since the last call.
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

// stop cancels the planned sync and reports whether there was one. The caller holds the mutex.
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

// close does the planned sync now, if there is one. It returns the error of the last sync.
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

// syncLog syncs the write-ahead log and its entry in the directory. It does nothing if there is no log: SQLite syncs the database file and
// removes the log when the last connection closes.
func (d *File) syncLog() error {
	file, err := os.OpenFile(d.logPath, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(file.Sync(), file.Close())
	}
	if err == nil {
		err = syncDir(filepath.Dir(d.logPath))
	}
	if err != nil {
		return engine.FileError(err, d.logPath)
	}
	return nil
}
