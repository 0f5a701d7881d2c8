package testkit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// closeWait is how long a file may stay open after the tests. Some connections
// close only a moment after their other end has closed.
const closeWait = Patience

// Tests are the tests of a package. The type *testing.M implements this
// interface.
type Tests interface{ Run() int }

// NoOpenFiles returns Tests that run the given tests. If these tests pass but
// leave a file, a pipe or a socket open, Run prints its name and returns 1. The
// check works only on Linux.
func NoOpenFiles(tests Tests) Tests { return checkedTests{tests, os.Stderr} }

type checkedTests struct {
	tests  Tests
	report io.Writer
}

// Run runs the tests and the check.
func (c checkedTests) Run() int {
	before := openFiles()
	code := c.tests.Run()
	if code != 0 {
		return code
	}

	left := leftOpen(before)
	for end := time.Now().Add(closeWait); len(left) > 0 && time.Now().Before(end); left = leftOpen(before) {
		time.Sleep(10 * time.Millisecond)
	}

	for _, name := range left {
		fmt.Fprintln(c.report, "testkit: the tests left a file open:", name)
		code = 1
	}

	return code
}

// leftOpen returns the names of the files that are open now and weren't open
// before. It leaves out removed -shm files: the next close of any database
// closes their descriptors.
func leftOpen(before map[string]string) (names []string) {
	for fd, name := range openFiles() {
		if before[fd] != name && !strings.HasSuffix(name, "-shm (deleted)") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// openFiles maps the descriptors of this process to the names of their files.
// It leaves out the descriptors with which the runtime of Go waits for files
// and connections: the runtime opens them when they are first needed, and never
// closes them.
func openFiles() map[string]string {
	files := map[string]string{}
	if runtime.GOOS != "linux" {
		return files
	}

	const directory = "/proc/self/fd"
	entries, err := os.ReadDir(directory)
	if err != nil {
		panic(err)
	}

	for _, entry := range entries {
		name, err := os.Readlink(filepath.Join(directory, entry.Name()))
		if err != nil { // ReadDir used this descriptor to read the directory, and has closed it
			continue
		}
		if name != "anon_inode:[eventpoll]" && name != "anon_inode:[eventfd]" {
			files[entry.Name()] = name
		}
	}

	return files
}
