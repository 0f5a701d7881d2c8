package fault

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
)

// Op is an operation of SQLite on a file.
type Op int

// A Disk can make each of these operations fail.
const (
	Open Op = iota
	Read
	Write
	Truncate
	Sync
	Delete
	Lock      // a writer takes the write lock of the database
	Committed // a transaction was committed; an error code does not undo it, but the caller of the commit gets the error
)

func (op Op) String() string {
	return [...]string{"open", "read", "write", "truncate", "sync", "delete", "lock", "committed"}[op]
}

// Changes reports whether the operation changes a file or makes a change
// durable.
func (op Op) Changes() bool { return op == Write || op == Truncate || op == Sync || op == Delete }

// Event is one operation.
type Event struct {
	Op           Op
	Path         string
	Offset, Size int64
}

// Code is the result of an operation. OK means that the operation runs. With an
// error code the operation fails without effect.
type Code int32

// These are the results that tests use.
const (
	OK       Code = sqlite3.SQLITE_OK
	Busy     Code = sqlite3.SQLITE_BUSY
	Full     Code = sqlite3.SQLITE_FULL
	IOErr    Code = sqlite3.SQLITE_IOERR
	ReadOnly Code = sqlite3.SQLITE_READONLY
	Corrupt  Code = sqlite3.SQLITE_CORRUPT
	CantOpen Code = sqlite3.SQLITE_CANTOPEN
)

// Disk simulates the disk under a database. It also keeps the file contents
// that would remain after a kill of the process or a power failure.
type Disk struct {
	path string

	mu      sync.Mutex
	decide  func(Event) Code
	refuses bool
	now     map[string][]byte // current content of each file
	durable map[string][]byte // content of each file at its last sync
}

var (
	disksMu sync.RWMutex
	disks   = map[string]*Disk{}
)

// Under installs a disk under the database at path until the end of the test.
// The database must be closed. A new disk replaces an older one.
func Under(t testing.TB, path string) *Disk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}

	path = filepath.Join(dir, filepath.Base(path))
	d := &Disk{path: path, now: map[string][]byte{}}
	for _, name := range []string{path, path + "-wal"} {
		if data, err := os.ReadFile(name); err == nil {
			d.now[name] = data
		}
	}

	d.durable = clone(d.now)
	disksMu.Lock()
	disks[path] = d
	disksMu.Unlock()
	t.Cleanup(func() {
		d.Decide(nil)
		disksMu.Lock()
		defer disksMu.Unlock()
		if disks[path] == d {
			delete(disks, path)
		}
	})
	return d
}

func diskOf(path string) *Disk {
	disksMu.RLock()
	defer disksMu.RUnlock()
	return disks[strings.TrimSuffix(path, "-wal")]
}

// Decide sets the function that decides the result of each operation. Only one
// goroutine at a time calls this function. If it is nil, every operation
// succeeds.
func (d *Disk) Decide(decide func(Event) Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decide = decide
	d.refuse(false)
}

// refusing counts the disks that have refused a lock since their last Decide or
// their last lock.
var refusing atomic.Int32

func (d *Disk) refuse(refuses bool) {
	switch {
	case refuses && !d.refuses:
		refusing.Add(1)
	case !refuses && d.refuses:
		refusing.Add(-1)
	}
	d.refuses = refuses
}

func (d *Disk) ask(e Event) Code {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.decide == nil {
		return OK
	}
	code := d.decide(e)
	if e.Op == Lock {
		d.refuse(code != OK)
	}
	return code
}

func (d *Disk) written(path string, data []byte, offset int64) {
	d.mu.Lock()
	defer d.mu.Unlock()

	file := d.now[path]
	if end := offset + int64(len(data)); end > int64(len(file)) {
		file = append(file, make([]byte, end-int64(len(file)))...)
	}
	copy(file[offset:], data)
	d.now[path] = file
}

func (d *Disk) truncated(path string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now[path] = d.now[path][:min(size, int64(len(d.now[path])))]
}

func (d *Disk) synced(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.durable[path] = slices.Clone(d.now[path])
}

func (d *Disk) deleted(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.now, path)
	delete(d.durable, path)
}

// Image holds the files of a database by the suffix of their names: "" and
// "-wal".
type Image map[string][]byte

// Killed returns the files that remain if this process is killed now. The
// function that Decide has set may call Killed.
func (d *Disk) Killed() Image { return d.image(d.now) }

// PowerCut returns the files that remain if the power fails now. They contain
// only synced data. The function that Decide has set may call PowerCut.
func (d *Disk) PowerCut() Image { return d.image(d.durable) }

func (d *Disk) image(files map[string][]byte) Image {
	image := Image{}
	for path, data := range files {
		image[strings.TrimPrefix(path, d.path)] = slices.Clone(data)
	}
	return image
}

// Save writes the files of an image as the database at path.
func (i Image) Save(path string) error {
	for suffix, data := range i {
		if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func clone(files map[string][]byte) map[string][]byte {
	files = maps.Clone(files)
	for path, data := range files {
		files[path] = slices.Clone(data)
	}
	return files
}
