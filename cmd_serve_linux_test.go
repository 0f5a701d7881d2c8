package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// interruptOnAddress sends INT to this process when the address of the pages is
// printed.
type interruptOnAddress struct {
	printed bytes.Buffer
	sent    bool
}

func (w *interruptOnAddress) Write(text []byte) (int, error) {
	if !w.sent && strings.Contains(string(text), "http://") {
		w.sent = true
		runtime.LockOSThread() // send the signal to this thread: it then arrives before Tgkill returns
		defer runtime.UnlockOSThread()
		if err := syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGINT); err != nil {
			return 0, err
		}
	}
	return w.printed.Write(text)
}

// TestSignalAfterAddressStopsCommand sends a signal as soon as the address is
// printed, as a program that reads the address could do. If the command did not
// handle signals yet, the signal would end this test process.
func TestSignalAfterAddressStopsCommand(t *testing.T) {
	db := filepath.Join(t.TempDir(), "runner.db")
	for _, command := range [][]string{
		{"work", "--serve", "127.0.0.1:0"}, // this command creates the database
		{"serve", "--listen", "127.0.0.1:0"},
	} {
		var output interruptOnAddress
		args := append([]string{"runner", "--db", db}, command...)
		if got := run(t.Context(), args, strings.NewReader(""), &output, &output); got != 0 || !output.sent {
			t.Errorf("%s: got exit status %d, and INT sent: %t; want 0 and true\n%s", command[0], got, output.sent, &output.printed)
		}
	}
}
