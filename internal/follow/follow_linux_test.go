package follow

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// received contains the data that a follower has received about a task.
type received struct {
	mu       sync.Mutex
	data     map[int64]map[string]*bytes.Buffer // received data, by generation of the attempt and name of the stream
	complete map[int64]bool                     // whether all data of an ended attempt has arrived, by generation
	ended    chan int64                         // generations of attempts that have ended
}

// listen starts a follower of a task.
func listen(t *testing.T, dir string, id int64) (*Follower, *received) {
	t.Helper()
	f, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := f.Bind(id); err != nil {
		t.Fatal(err)
	}
	got := &received{data: map[int64]map[string]*bytes.Buffer{}, complete: map[int64]bool{},
		ended: make(chan int64, 1)}
	f.Serve(func(generation int64) (func(string, []byte) error, func(bool)) {
		got.mu.Lock()
		defer got.mu.Unlock()
		streams := map[string]*bytes.Buffer{"stdout": {}, "stderr": {}}
		got.data[generation] = streams
		receive := func(stream string, data []byte) error {
			streams[stream].Write(data)
			return nil
		}
		return receive, func(complete bool) {
			got.mu.Lock()
			defer got.mu.Unlock()
			got.complete[generation] = complete
			got.ended <- generation
		}
	})
	return f, got
}

func TestFollowersReceiveEveryByteOfTheirTask(t *testing.T) {
	dir := t.TempDir()
	_, one := listen(t, dir, 7)
	_, two := listen(t, dir, 7)
	_, none := listen(t, dir, 77)
	worker := Connect(t.Context(), dir, 7, 3)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for part := range bytes.Lines(bytes.ReplaceAll(big, []byte("f"), []byte("\n"))) {
		worker.Write("stdout", part)
	}
	worker.Write("stderr", []byte("warning"))
	worker.Close()
	for name, got := range map[string]*received{"first": one, "second": two} {
		<-got.ended
		if !got.complete[3] {
			t.Errorf("%s follower: got an incomplete attempt, want a complete one", name)
		}
		if n := got.data[3]["stdout"].Len(); n != len(big) {
			t.Errorf("%s follower: got %d bytes of stdout, want %d", name, n, len(big))
		}
		if text := got.data[3]["stderr"].String(); text != "warning" {
			t.Errorf("%s follower: got %q on stderr, want %q", name, text, "warning")
		}
	}
	if len(none.data) > 0 {
		t.Errorf("follower of another task: got %d attempts, want none", len(none.data))
	}
}

func TestConnectFindsNoFollower(t *testing.T) {
	dir := t.TempDir()
	if f := Connect(t.Context(), dir, 1, 1); f != nil {
		t.Error("got followers without a directory, want none")
	}
	f, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := Connect(t.Context(), dir, 1, 1); got != nil {
		t.Error("got a follower that is bound to no task, want none")
	}
	if err := f.Bind(1); err != nil {
		t.Fatal(err)
	}
	_ = f.listener.Close() // the file of the socket remains, as after kill -9
	if got := Connect(t.Context(), dir, 1, 1); got != nil {
		t.Error("got a follower whose process is dead, want none")
	}
	left, err := os.ReadDir(directory(dir))
	if err != nil || len(left) != 0 {
		t.Errorf("got %d sockets after the follower's death and error %v, want none", len(left), err)
	}
	var nobody *Followers
	nobody.Write("stdout", []byte("text"))
	nobody.Close()
}

// TestAStoppedAttemptLeavesASlowFollower stops an attempt whose follower does not read, and checks that the attempt does not wait for it.
func TestAStoppedAttemptLeavesASlowFollower(t *testing.T) {
	dir := t.TempDir()
	f, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Bind(1); err != nil {
		t.Fatal(err)
	}
	block, ended := make(chan struct{}), make(chan bool, 1)
	f.Serve(func(int64) (func(string, []byte) error, func(bool)) {
		return func(string, []byte) error { <-block; return nil }, func(complete bool) { ended <- complete }
	})
	ctx, stop := context.WithCancel(t.Context())
	worker := Connect(ctx, dir, 1, 1)
	stop()
	began := time.Now()
	for range 64 {
		worker.Write("stdout", make([]byte, 1<<20)) // more data than fits into the buffers of a socket
	}
	worker.Close()
	if took := time.Since(began); took > 10*hurryMost {
		t.Errorf("the worker was held for %v, want about %v", took, hurryMost)
	}
	close(block)
	if complete := <-ended; complete {
		t.Error("got a complete attempt, want an incomplete one")
	}
	f.Close()
}

func TestListenInALongDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, got := listen(t, dir, 1)
	worker := Connect(t.Context(), dir, 1, 1)
	worker.Write("stdout", []byte("text"))
	worker.Close()
	<-got.ended
	if text := got.data[1]["stdout"].String(); text != "text" || !got.complete[1] {
		t.Errorf("got %q, complete %v; want %q, complete true", text, got.complete[1], "text")
	}
}
