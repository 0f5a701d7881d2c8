package fault

import (
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file implements a SQLite VFS on top of the VFS of the system. It
// replaces some methods in the method table of an open file. The new methods
// first ask the Disk whether the operation fails.

type methods = sqlite3.Tsqlite3_io_methods

var (
	system sqlite3.Tsqlite3_vfs // copy of the system's VFS; the functions of this file call its functions
	below  uintptr              // address of the system's VFS
	zone   = libc.NewTLS()      // thread state for calls of C code

	mu     sync.RWMutex
	files  = map[uintptr]*file{}   // open files of disks, by address
	tables = map[uintptr]uintptr{} // copies of method tables, with functions of this file; the key is the address of the original table
)

// file is an open file of a disk.
type file struct {
	disk *Disk
	path string
	real *methods
}

func init() {
	below = sqlite3.Xsqlite3_vfs_find(zone, 0)
	system = *at[sqlite3.Tsqlite3_vfs](below)
	layer := system
	name, err := libc.CString("fault")
	if err != nil {
		panic(err)
	}

	layer.FpNext, layer.FzName = 0, name
	layer.FxOpen, layer.FxDelete, layer.FxSleep = pointer(open), pointer(remove), pointer(sleep)
	if rc := sqlite3.Xsqlite3_vfs_register(zone, lasting(layer), 1); rc != sqlite3.SQLITE_OK {
		panic("fault: cannot register")
	}
}

// lasting copies a value into memory that is never moved or freed, so that C
// code may keep its address.
func lasting[T any](value T) uintptr {
	address := libc.Xmalloc(zone, libc.Tsize_t(unsafe.Sizeof(value)))
	if address == 0 {
		panic("fault: out of memory")
	}
	*at[T](address) = value
	return address
}

// at converts an address from C code to a pointer to a value.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// pointer returns the address of a declared Go function for C code. The helper
// function() converts an address back to a Go function.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ p uintptr }{p})) }

func open(tls *libc.TLS, _, name, id uintptr, flags int32, out uintptr) int32 {
	real := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](system.FxOpen)
	path := ""
	if name != 0 {
		path = libc.GoString(name)
	}

	disk := diskOf(path)
	if disk == nil {
		return real(tls, below, name, id, flags, out)
	}
	if rc := disk.ask(Event{Op: Open, Path: path}); rc != OK {
		at[sqlite3.Tsqlite3_file](id).FpMethods = 0
		return int32(rc)
	}

	rc := real(tls, below, name, id, flags, out)
	if of := at[sqlite3.Tsqlite3_file](id).FpMethods; rc == sqlite3.SQLITE_OK && of != 0 {
		at[sqlite3.Tsqlite3_file](id).FpMethods = tableOver(of)
		mu.Lock()
		files[id] = &file{disk, path, at[methods](of)}
		mu.Unlock()
	}

	return rc
}

// tableOver copies the method table of the system's VFS at an address, and
// replaces some methods in the copy by those of this file.
func tableOver(address uintptr) uintptr {
	mu.Lock()
	defer mu.Unlock()

	if tables[address] == 0 {
		ours := *at[methods](address)
		ours.FxClose, ours.FxRead, ours.FxWrite, ours.FxTruncate = pointer(closeFile), pointer(read), pointer(write), pointer(truncate)
		ours.FxSync, ours.FxShmLock, ours.FxFileControl = pointer(flush), pointer(lock), pointer(control)
		tables[address] = lasting(ours)
	}
	return tables[address]
}

func fileOf(id uintptr) *file {
	mu.RLock()
	defer mu.RUnlock()
	return files[id]
}

func remove(tls *libc.TLS, _, name uintptr, dirSync int32) int32 {
	path := libc.GoString(name)
	if disk := diskOf(path); disk != nil {
		dirSync = 0
		if rc := disk.ask(Event{Op: Delete, Path: path}); rc != OK {
			return int32(rc)
		}
		disk.deleted(path)
	}
	return function[func(*libc.TLS, uintptr, uintptr, int32) int32](system.FxDelete)(tls, below, name, dirSync)
}

// sleep leaves out the pauses in which SQLite waits up to ten seconds for a
// lock that it needs to read the log, while a Disk refuses locks. Their length
// is 39 µs times a square. The busy handler sleeps for whole milliseconds.
func sleep(tls *libc.TLS, _ uintptr, microseconds int32) int32 {
	if refusing.Load() > 0 && microseconds%1000 != 0 {
		return microseconds
	}
	return function[func(*libc.TLS, uintptr, int32) int32](system.FxSleep)(tls, below, microseconds)
}

func closeFile(tls *libc.TLS, id uintptr) int32 {
	f := fileOf(id)
	mu.Lock()
	delete(files, id)
	mu.Unlock()
	return function[func(*libc.TLS, uintptr) int32](f.real.FxClose)(tls, id)
}

func read(tls *libc.TLS, id, to uintptr, n int32, offset int64) int32 {
	f := fileOf(id)
	if rc := f.disk.ask(Event{Op: Read, Path: f.path, Offset: offset, Size: int64(n)}); rc != OK {
		return int32(rc)
	}
	return function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.real.FxRead)(tls, id, to, n, offset)
}

func write(tls *libc.TLS, id, from uintptr, n int32, offset int64) int32 {
	f := fileOf(id)
	if rc := f.disk.ask(Event{Op: Write, Path: f.path, Offset: offset, Size: int64(n)}); rc != OK {
		return int32(rc)
	}
	rc := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.real.FxWrite)(tls, id, from, n, offset)
	if rc == sqlite3.SQLITE_OK {
		f.disk.written(f.path, unsafe.Slice(at[byte](from), n), offset)
	}
	return rc
}

func truncate(tls *libc.TLS, id uintptr, size int64) int32 {
	f := fileOf(id)
	if rc := f.disk.ask(Event{Op: Truncate, Path: f.path, Size: size}); rc != OK {
		return int32(rc)
	}
	rc := function[func(*libc.TLS, uintptr, int64) int32](f.real.FxTruncate)(tls, id, size)
	if rc == sqlite3.SQLITE_OK {
		f.disk.truncated(f.path, size)
	}
	return rc
}

// flush does not sync the real disk, because the Disk decides what is durable.
// That makes the tests faster.
func flush(_ *libc.TLS, id uintptr, _ int32) int32 {
	f := fileOf(id)
	if rc := f.disk.ask(Event{Op: Sync, Path: f.path}); rc != OK {
		return int32(rc)
	}
	f.disk.synced(f.path)
	return sqlite3.SQLITE_OK
}

// lock handles the locks in the index of the write-ahead log. The lock at
// offset 0 is the write lock.
func lock(tls *libc.TLS, id uintptr, offset, n, flags int32) int32 {
	f := fileOf(id)
	if want := int32(sqlite3.SQLITE_SHM_LOCK | sqlite3.SQLITE_SHM_EXCLUSIVE); offset == 0 && n == 1 && flags == want {
		if rc := f.disk.ask(Event{Op: Lock, Path: f.path}); rc != OK {
			return int32(rc)
		}
	}
	return function[func(*libc.TLS, uintptr, int32, int32, int32) int32](f.real.FxShmLock)(tls, id, offset, n, flags)
}

// control handles the file controls of SQLite. SQLite sends the control
// COMMIT_PHASETWO when a transaction has been committed. The caller of the
// commit receives the error that control returns for it.
func control(tls *libc.TLS, id uintptr, op int32, arg uintptr) int32 {
	f := fileOf(id)
	if op == sqlite3.SQLITE_FCNTL_COMMIT_PHASETWO {
		if rc := f.disk.ask(Event{Op: Committed, Path: f.path}); rc != OK {
			return int32(rc)
		}
	}
	return function[func(*libc.TLS, uintptr, int32, uintptr) int32](f.real.FxFileControl)(tls, id, op, arg)
}
