//go:build !race

// The test in this file measures memory. The race detector needs additional
// memory, so the test runs only without it.

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// numbers is an io.Reader whose text is the numbers n.next to n.last, one per
// line, as the command seq prints them. It generates the text while a test
// reads it, so it needs little memory.
type numbers struct {
	next, last int64
	left       []byte
}

func (n *numbers) Read(to []byte) (int, error) {
	for len(n.left) < len(to) && n.next <= n.last {
		n.left = append(strconv.AppendInt(n.left, n.next, 10), '\n')
		n.next++
	}
	if len(n.left) == 0 {
		return 0, io.EOF
	}
	size := copy(to, n.left)
	n.left = append(n.left[:0], n.left[size:]...)
	return size, nil
}

// differs compares two streams in blocks of 64 KiB. It returns the offset of
// the first block that differs, or -1 if the streams are equal.
func differs(got, want io.Reader) (at int64) {
	g, w := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, gotErr := io.ReadFull(got, g)
		m, wantErr := io.ReadFull(want, w)
		if n != m || !bytes.Equal(g[:n], w[:m]) {
			return at
		}
		at += int64(n)
		if gotErr != nil || wantErr != nil {
			if n == m && gotErr != nil && wantErr != nil {
				return -1
			}
			return at
		}
	}
}

// TestRunPassesOnAllOutput checks that runner run prints 169 MB of output
// unchanged, although it stores only 1 MiB of them, and that it needs little
// memory for that.
func TestRunPassesOnAllOutput(t *testing.T) {
	const (
		last   = 20_000_000 // seq prints 168,888,897 bytes
		memory = 100 << 10  // KiB
	)
	c := exec.Command("runner", "run", "--", "seq", "1", strconv.Itoa(last))
	c.Env = append(os.Environ(), "RUNNER_DB="+filepath.Join(t.TempDir(), "runner.db"))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if at := differs(out, &numbers{next: 1, last: last}); at >= 0 {
		t.Errorf("the output differs after %d bytes, want no difference", at)
	}
	_, _ = io.Copy(io.Discard, out) // read the remaining output, because runner cannot end before somebody has read it
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	got := int64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	t.Logf("%d MiB of memory", got>>10)
	if got > memory {
		t.Errorf("got %d KiB of memory, want at most %d", got, memory)
	}
}
