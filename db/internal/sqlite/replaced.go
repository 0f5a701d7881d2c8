package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"example.com/runner/db/internal/engine"
	"example.com/runner/jobs"
)

// # Problem
//
// A user may remove, move or replace the files of an open database. A process
// that has the old files open goes on writing to its own file, WAL and shared
// memory, but nobody else sees these writes: confirmed tasks would be lost
// without an error.
//
// # Invariants
//
//   - After each commit the writer checks that the paths still lead to the
//     files that this process has open, and confirms the write only if they do.
//     It also checks before it writes, unless it did within the last
//     millisecond.
//   - A program that copies another file over the database keeps its inode, and
//     nothing documented tells a copy from a checkpoint. The check notices only
//     that the file is empty.
//   - A process doesn't open a database if other processes have other files
//     open under the same names (checkFilesInUse).
//   - The last process that closes a replaced database doesn't remove the WAL
//     of the new one (keepLog).
//
// A check costs three calls of stat (4 µs of processor time). All writes of a
// group share one.
//
// # Alternatives
//
// inotify reports a replacement only after some time, so the writer could
// confirm a write before the report. A check could also open the files, but
// closing them would drop the locks of this process.

// fileID identifies a file independently of its name. It's zero on Windows.
type fileID struct{ device, inode uint64 }

// stamp identifies a file and has its size.
type stamp struct {
	id   fileID
	size int64
}

func statFile(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{identify(info), info.Size()}, nil
}

// besideFiles are the paths of the WAL and of the shared memory. SQLite doesn't
// remove these files as long as a process has the database open.
func (d *File) besideFiles() [2]string { return [2]string{d.logPath, d.sharedPath} }

// recordFiles records the files that the connection has open beside the
// database.
func (d *File) recordFiles() error {
	var companions [2]fileID
	for i, name := range d.besideFiles() {
		file, err := statFile(name)
		if err != nil {
			return d.lostFile(name, err)
		}
		companions[i] = file.id
	}

	d.companions.Store(&companions)
	return nil
}

// Replaced returns an error of kind ErrReplaced if the paths of the database no
// longer lead to the files that this process has open, or if somebody has
// emptied the database file. If the system doesn't let this process look, as in
// an unreadable directory, it returns the error of the system.
func (d *File) Replaced() error {
	now, err := statFile(d.path)
	if err != nil || now.id != d.id {
		return d.lostFile(d.path, err)
	}

	companions := d.companions.Load()
	if companions == nil {
		return nil
	}

	if now.size == 0 { // whoever opens the empty file removes its log
		return d.replacedError(d.path, "was emptied", "another program has truncated it", nil)
	}

	for i, name := range d.besideFiles() {
		if file, err := statFile(name); err != nil || file.id != companions[i] {
			return d.lostFile(name, err)
		}
	}

	return nil
}

// lostFile returns the error of a file that is no longer at its path, or that
// stat can't find for another reason.
func (d *File) lostFile(name string, err error) error {
	switch {
	case err == nil:
		return d.replacedError(name, "was replaced", "another file is in its place", nil)
	case errors.Is(err, fs.ErrNotExist):
		return d.replacedError(name, "was removed", "it was removed or moved while it was in use", err)
	}
	return engine.FileError(err, name)
}

func (d *File) replacedError(name, what, why string, err error) error {
	part := map[string]string{
		d.path:       "database",
		d.logPath:    "log of the database",
		d.sharedPath: "shared memory of the database",
	}[name]
	return &jobs.Error{Kind: jobs.ErrReplaced, What: part + " " + what + ": " + name, Err: err,
		Why:  []string{why, "nobody else would see what this process writes from now on"},
		Hint: "stop every process that uses " + d.path + ", then start them again"}
}

// Committed does the checks of Replaced after a commit. With Options.Flash it
// returns the error of the last failed sync, too. changed says whether the
// commit has changed the database.
func (d *File) Committed(changed bool) error {
	if err := d.Replaced(); err != nil {
		return err
	}
	return d.logSync.committed(changed)
}

// opening has a mutex for each path. Open holds it while it checks and opens
// the database; see usedBy.
var opening sync.Map

func (d *File) lockOpening() (unlock func()) {
	mu, _ := opening.LoadOrStore(d.path, &sync.Mutex{})
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// checkFilesInUse returns an error of kind ErrReplaced if other processes use
// another database file, WAL or shared memory than those at the path: somebody
// has removed or replaced a file, or those processes use another path to it. A
// process that is opening or closing the database looks the same for a moment,
// so this checks again until the busy timeout has passed.
func (d *File) checkFilesInUse() error {
	if err := checkLeftLog(d.path); err != nil {
		return err
	}
	return d.repeat(d.mismatch, func(error) bool { return true }, pauseBusy)
}

// mismatch makes the check of checkFilesInUse once.
func (d *File) mismatch() error {
	inUse := func(why string, err error) error {
		return &jobs.Error{Kind: jobs.ErrReplaced, What: "database was replaced while it is in use: " + d.path, Err: err,
			Why: []string{why, "nothing was changed"}, Hint: "stop every process that uses it, then again"}
	}

	use := usedBy(d.path)
	if use.file {
		for _, name := range d.besideFiles() {
			if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
				return inUse(name+" is missing, though other processes have the database open: it was removed, or they use "+
					"another path to the file", err)
			}
		}
	}
	if use.shared {
		return inUse("other processes have a database open that was here before: it was removed, moved or replaced", nil)
	}

	return nil
}

// checkLeftLog returns an error of kind ErrReplaced if the database at path is
// missing or empty, but its log isn't. SQLite would remove this log, and the
// tasks in it, when a connection begins to read.
func checkLeftLog(path string) error {
	log, _ := os.Stat(path + "-wal") // first: a process that is creating the database creates the log last
	if log == nil || log.Size() == 0 {
		return nil
	}
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return &jobs.Error{Kind: jobs.ErrReplaced, What: "database was removed or emptied, and its log was not: " + path + "-wal",
			Why:  []string{"the log may hold tasks that are nowhere else; nothing was changed"},
			Hint: "put the database back; or rm " + path + "-wal " + path + "-shm, when no process uses them, to begin anew"}
	}
	return nil
}

// keepLog keeps the WAL of a replaced database. When the last connection
// closes, SQLite copies the WAL into the file and removes it, but after a
// replacement it may hold tasks of other processes. A shared lock on the file
// keeps SQLite from the exclusive one that it needs for that.
func (d *File) keepLog() (release func()) {
	file, err := os.Open(d.path)
	if err != nil {
		return func() {} // without a file at the path, SQLite itself keeps the WAL
	}
	_ = lockShared(file)
	return func() { file.Close() }
}
