package fault

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
)

// Op is what SQLite does with a file.
type Op int

// The operations of which a Disk is asked.
const (
	Open Op = iota
	Read
	Write
	Truncate
	Sync
	Delete
	Lock      // a writer takes the database's write lock
	Committed // a transaction is in the log; an error now is one after the commit
)

func (op Op) String() string {
	return [...]string{"open", "read", "write", "truncate", "sync", "delete", "lock", "committed"}[op]
}

// Changes says whether the operation changes a file, or makes a change last.
func (op Op) Changes() bool { return op == Write || op == Truncate || op == Sync || op == Delete }

// Event is one operation.
type Event struct {
	Op           Op
	Path         string
	Offset, Size int64
}

// Code is an answer: OK, or the error that the operation ends with instead of being done.
type Code int32

// The answers that tests give.
const (
	OK       Code = sqlite3.SQLITE_OK
	Busy     Code = sqlite3.SQLITE_BUSY
	Full     Code = sqlite3.SQLITE_FULL
	IOErr    Code = sqlite3.SQLITE_IOERR
	ReadOnly Code = sqlite3.SQLITE_READONLY
	Corrupt  Code = sqlite3.SQLITE_CORRUPT
	CantOpen Code = sqlite3.SQLITE_CANTOPEN
)

// Disk is what lies under the database at a path. While it exists it also knows what of the files would be left if the process
// were killed, or the power failed.
type Disk struct {
	path string

	mu      sync.Mutex
	decide  func(Event) Code
	now     map[string][]byte // the files as they are
	durable map[string][]byte // and as they were when they were last synced
}

var (
	disksMu sync.RWMutex
	disks   = map[string]*Disk{}
)

// Under puts a disk under the database at path, which is not open, for as long as the test runs. It takes the place of an earlier one.
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

// Decide makes decide the one that is asked of each operation, by one goroutine at a time; nil: everything works.
func (d *Disk) Decide(decide func(Event) Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decide = decide
}

func (d *Disk) ask(e Event) Code {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decide == nil {
		return OK
	}
	return d.decide(e)
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

// Image is the files of a database, by what their names have beyond its own: "" and "-wal".
type Image map[string][]byte

// Killed is what another process finds when this one is killed now. It may be called by decide.
func (d *Disk) Killed() Image { return d.image(d.now) }

// PowerCut is what is left when the power fails now and nothing was written but what was synced. It may be called by decide.
func (d *Disk) PowerCut() Image { return d.image(d.durable) }

func (d *Disk) image(files map[string][]byte) Image {
	image := Image{}
	for path, data := range files {
		image[strings.TrimPrefix(path, d.path)] = slices.Clone(data)
	}
	return image
}

// Save writes the files of a database at path.
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
