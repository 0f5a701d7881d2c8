package ops

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServiceManagerThatDoesNotReadStopsNothing fills the queue of the socket.
// A report then must not wait for its reader, because the worker's loop sends
// it.
func TestServiceManagerThatDoesNotReadStopsNothing(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	address := &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"}
	manager, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	sender, err := net.DialUnix("unixgram", nil, address)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for err == nil {
		if err = sender.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err == nil {
			_, err = sender.Write([]byte("STATUS=full"))
		}
	}

	var log bytes.Buffer
	n := NewNotifier(address.Name, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	n.Report(0, false)
	n.Stop()

	if !strings.Contains(log.String(), "cannot notify the service manager") {
		t.Errorf("got the log %q, want a report that was lost", log.String())
	}
}
