package sqlite

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"sync"

	"example.com/runner/jobs"
)

// # Problem
//
// A user may remove, move or replace the files of an open database. A process that has the old files open continues to write to its own
// file, log and shared memory, but no other process sees these writes. So without the checks in this file, confirmed tasks would be lost
// without an error.
//
// # Invariants
//
//   - After each commit the writer checks that the paths still lead to the files that this process has open, and confirms the write only if
//     they do. It also checks the paths before it writes, unless it has checked them within the last millisecond.
//   - If a program overwrites the file in place, the file keeps its inode. So the check also compares the size and the modification time.
//     Normally only a checkpoint changes the file, and the WAL-index shows the progress of checkpoints. If the file has changed without
//     such progress, the check reports that the file was overwritten.
//   - One change without such progress is harmless: if a process is killed while it commits, SQLite rebuilds the shared memory from the
//     log, and the next checkpoint copies the same frames again. The check recognizes a rebuild, because SQLite's counter of commits then
//     begins again at 0. In this case it records the new state of the file and reports nothing.
//   - A process does not open a database if other processes have other files open under the same names (checkFilesInUse).
//   - The last process that closes a replaced database does not remove the log of the new database (keepLog).
//
// A check costs three calls of stat (4 µs of processor time). All writes of a group share one check.
//
// # Alternatives
//
// An inotify watch reports a replacement only after some time, so the writer could confirm a write before the report. A check could also
// open the files, but closing them would drop the locks of this process.

// stamp identifies a file and the state of its content. If the modification time or the size differs, the content has changed.
type stamp struct {
	id      fileID
	written int64 // modification time in nanoseconds
	size    int64
}

// companionFiles identifies the log and the shared memory beside the database. SQLite does not remove them as long as a process has the
// database open.
type companionFiles struct{ log, shared fileID }

// content is the state of the database file at the last check of this process.
type content struct {
	stamp
	checkpoints checkpoints
	commits     uint32 // counter of SQLite's commits; it begins again at 0 when SQLite recovers the shared memory
	settled     bool   // whether no checkpoint was in progress at the last check
}

// checkpoints says how far checkpoints have copied the log into the database file. These numbers are read from the WAL-index.
// Nothing but a checkpoint writes to the database file.
type checkpoints struct {
	salt            [8]byte
	done, attempted uint32 // done: number of log frames that checkpoints have copied; attempted: number that they have tried to copy
}

// Replaced returns an error of kind ErrReplaced if the paths of the database no longer lead to the files that this process has open,
// or if somebody has overwritten the database file.
func (d *File) Replaced() error {
	now, err := statFile(d.path)
	if err != nil || now.id != d.id {
		return d.lostFile(d.path, err)
	}
	beside := d.companions.Load()
	if beside == nil {
		return nil
	}
	if log, err := statFile(d.logPath); err != nil || log.id != beside.log {
		return d.lostFile(d.logPath, err)
	}
	if shared, err := statFile(d.sharedPath); err != nil || shared.id != beside.shared {
		return d.lostFile(d.sharedPath, err)
	}
	if seen := d.content.Load(); seen != nil && seen.stamp != now && d.overwritten() {
		return d.replacedError(d.path, "was overwritten", "another program has written to it, and not through SQLite", nil)
	}
	return nil
}

// overwritten reads the state of the file's content again. It reports whether the file has changed without a checkpoint.
func (d *File) overwritten() bool {
	d.contentMu.Lock()
	defer d.contentMu.Unlock()
	last, now := d.content.Load(), d.readContent()
	if last != nil && now != nil && last.settled && now.settled && last.checkpoints == now.checkpoints && last.stamp != now.stamp &&
		last.commits <= now.commits {
		return true
	}
	d.content.Store(now)
	return false
}

// Committed does the checks of Replaced after a commit. A checkpoint changes the file. So if a checkpoint has begun or advanced, Committed
// also reads the file's size and modification time again, and later checks compare with these. With Options.Flash it returns the error of
// the last failed sync. The parameter "changed" says whether the commit has changed the database.
func (d *File) Committed(changed bool) error {
	if err := d.Replaced(); err != nil {
		return err
	}
	if last := d.content.Load(); last != nil {
		if now, commits, ok := d.index.header(); ok && (now != last.checkpoints || commits < last.commits) {
			d.overwritten()
		}
	}
	return d.logSync.committed(changed)
}

// readContent returns the state of the file's content, or nil if it is unknown.
func (d *File) readContent() *content {
	before, _, known := d.index.header()
	now, err := statFile(d.path)
	after, commits, ok := d.index.header()
	if !known || !ok || err != nil {
		return nil
	}
	return &content{now, after, commits, before == after && after.done == after.attempted}
}

// opening holds 64 mutexes; the hash of a path selects one of them. Open holds the mutex of its path while it checks and opens the
// database; see usedBy.
var opening [64]sync.Mutex

var openingSeed = maphash.MakeSeed()

func (d *File) lockOpening() (unlock func()) {
	mu := &opening[maphash.String(openingSeed, d.path)%uint64(len(opening))]
	mu.Lock()
	return mu.Unlock
}

// checkFilesInUse returns an error of kind ErrReplaced if other processes use a different database file, log or shared memory than those
// that this process finds at the path. This happens if somebody has removed or replaced a file, or if those processes use another path to
// the file. A process that is opening or closing the database may cause the same state for a moment. So checkFilesInUse checks again until
// the state has changed or the busy timeout has passed.
func (d *File) checkFilesInUse() error {
	if err := d.checkLeftLog(); err != nil {
		return err
	}
	return d.repeat(d.mismatch, func(error) bool { return true })
}

// checkLeftLog returns an error if there is a log whose database is missing or empty. SQLite would remove this log and the tasks in it.
func (d *File) checkLeftLog() error {
	log, _ := os.Stat(d.logPath) // check the log first: a process that is creating the database creates the log last
	if info, err := os.Stat(d.path); log != nil && log.Size() > 0 && (errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0) {
		return &jobs.Error{Kind: jobs.ErrReplaced, What: "database was removed or emptied, and its log was not: " + d.logPath,
			Why:  []string{"the log may hold tasks that are nowhere else; nothing was changed"},
			Hint: "put the database back; or rm " + d.path + "-wal " + d.path + "-shm, when no process uses them, to begin anew"}
	}
	return nil
}

// mismatch makes the check of checkFilesInUse once. It returns nil if no other process uses different files.
func (d *File) mismatch() error {
	use := usedBy(d.path)
	if use.file {
		for _, name := range []string{d.logPath, d.sharedPath} {
			if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
				return d.replacedInUse(name+" is missing, though other processes have the database open: it was removed, or they use "+
					"another path to the file", err)
			}
		}
	}
	if use.shared {
		return d.replacedInUse("other processes have a database open that was here before: it was removed, moved or replaced", nil)
	}
	return nil
}

func (d *File) replacedInUse(why string, err error) error {
	return &jobs.Error{Kind: jobs.ErrReplaced, What: "database was replaced while it is in use: " + d.path, Err: err,
		Why: []string{why, "nothing was changed"}, Hint: "stop every process that uses it, then again"}
}

// recordFiles records the files that the connection has open beside the database, and the state of the database file's content.
func (d *File) recordFiles() error {
	log, err := statFile(d.logPath)
	if err != nil {
		return d.lostFile(d.logPath, err)
	}
	shared, err := statFile(d.sharedPath)
	if err != nil {
		return d.lostFile(d.sharedPath, err)
	}
	d.closeIndex()
	d.contentMu.Lock()
	defer d.contentMu.Unlock()
	if !d.options.UnsafeFS {
		d.index = openIndex(d.sharedPath)
		d.commits.open(d.index.commits)
	}
	d.content.Store(d.readContent())
	d.companions.Store(&companionFiles{log.id, shared.id})
	return nil
}

// closeIndex ends the use of the WAL-index and forgets the state of the file's content.
func (d *File) closeIndex() {
	d.contentMu.Lock()
	defer d.contentMu.Unlock()
	d.commits.open(nil)
	d.content.Store(nil)
	d.index.close()
	d.index = nil
}

// lostFile returns the error of a file that is no longer at its path.
func (d *File) lostFile(name string, err error) error {
	what, why := "was replaced", "another file is in its place"
	if errors.Is(err, fs.ErrNotExist) {
		what, why = "was removed", "it was removed or moved while it was in use"
	}
	return d.replacedError(name, what, why, err)
}

func (d *File) replacedError(name, what, why string, err error) error {
	part := map[string]string{d.path: "database", d.logPath: "log of the database", d.sharedPath: "shared memory of the database"}[name]
	return &jobs.Error{Kind: jobs.ErrReplaced, What: part + " " + what + ": " + name, Err: err,
		Why: []string{why, "nobody else would see what this process writes from now on"}, Hint: "stop every process that uses " + d.path +
			", then start them again"}
}

// keepLog keeps the log of a replaced database. When the last connection closes, SQLite copies the log into the file and removes the log.
// After a replacement the log may hold tasks of other processes. So keepLog takes a shared lock on the file, and SQLite does not get the
// exclusive lock that it needs to remove the log.
func (d *File) keepLog() (release func()) {
	file, err := os.Open(d.path)
	if err != nil {
		return func() {} // if no file is at the path, SQLite itself keeps the log
	}
	_ = lockShared(file)
	return func() { file.Close() }
}
