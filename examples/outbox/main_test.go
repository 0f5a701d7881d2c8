package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// TestMain runs the program instead of the tests if OUTBOX_TEST is set. The
// tests start and kill such processes.
func TestMain(m *testing.M) {
	if os.Getenv("OUTBOX_TEST") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// server is an HTTP server that fails often: sometimes before it has stored a
// reading, and sometimes after that.
type server struct {
	mu     sync.Mutex
	stable bool // if true, the server does not fail
	calls  int
	seen   map[string]bool
	stored map[string][]int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	var reading Reading
	if err := json.NewDecoder(r.Body).Decode(&reading); err != nil || r.Header.Get("Idempotency-Key") != reading.key() {
		http.Error(w, "invalid reading or key", http.StatusBadRequest)
		return
	}
	random := rand.IntN(10)
	if !s.stable && random < 3 {
		http.Error(w, "try later", http.StatusServiceUnavailable)
		return
	}
	if key := reading.key(); !s.seen[key] {
		s.seen[key] = true
		s.stored[reading.Device] = append(s.stored[reading.Device], reading.Seq)
	}
	if !s.stable && random < 5 {
		panic(http.ErrAbortHandler) // the server has stored the reading, but the sender does not receive the answer
	}
	w.WriteHeader(http.StatusNoContent)
}

// check checks that the server has received all readings of all devices in
// order, although it failed at times. The method returns the number of
// requests.
func (s *server) check(t *testing.T, devices, readings int) (calls int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range devices {
		device := fmt.Sprint("device", d)
		if got := s.stored[device]; len(got) != readings {
			t.Errorf("%s: got %d readings at the server, want %d", device, len(got), readings)
		}
		for i, seq := range s.stored[device] {
			if want := int64(i + 1); seq != want {
				t.Errorf("%s: got reading %d, want reading %d", device, seq, want)
			}
		}
	}
	if s.calls <= devices*readings {
		t.Errorf("got %d calls for %d readings, want more, because the server often fails", s.calls, devices*readings)
	}
	return s.calls
}

func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), "OUTBOX_TEST=1", "GORACE=atexit_sleep_ms=0")
	return c
}

// TestReadingsArriveOnceAndInOrder records readings, kills the sender
// repeatedly, and uses a server that fails half of the time.
func TestReadingsArriveOnceAndInOrder(t *testing.T) {
	const devices, readings, kills = 4, 25, 6
	path := filepath.Join(t.TempDir(), "outbox.db")
	s := &server{seen: map[string]bool{}, stored: map[string][]int64{}}
	web := httptest.NewServer(s)
	defer web.Close()
	o, err := open(t.Context(), path, 5*time.Millisecond, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()

	var recording sync.WaitGroup
	for d := range devices {
		recording.Go(func() {
			for range readings {
				if _, err := o.record(t.Context(), fmt.Sprint("device", d), rand.Float64()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range kills {
		sender := start(t, "-db", path, "deliver", web.URL)
		if err := sender.Start(); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		before := s.calls
		s.mu.Unlock()
		err := admin.Changes(t.Context(), o.runner, func() (bool, error) { // wait until the sender has made some calls
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.calls > before+rand.IntN(20), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = sender.Process.Kill()
		_ = sender.Wait()
	}
	recording.Wait()
	s.mu.Lock()
	s.stable = true
	s.mu.Unlock()
	sender := start(t, "-db", path, "deliver", web.URL)
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	err = admin.Changes(t.Context(), o.runner, func() (bool, error) {
		n, _, err := o.runner.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Scheduled, jobs.Pending, jobs.Blocked,
			jobs.Running, jobs.Retrying}})
		return n == 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := sender.Wait(); err != nil {
		t.Error(err)
	}

	calls := s.check(t, devices, readings)
	t.Logf("%d calls for %d readings, %d kills", calls, devices*readings, kills)
	checkCommandLine(t, path, devices*readings)
}

// TestReadingSurvivesRepeatedKills checks that a reading is delivered although
// the sender is killed at each of the first attempts.
func TestReadingSurvivesRepeatedKills(t *testing.T) {
	const kills = 5 // the worker is killed more often than the default max_losses of a task allows
	path := filepath.Join(t.TempDir(), "outbox.db")
	calls, stable := make(chan bool), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // read the body first: before that, the HTTP server does not detect that the sender is dead
		select {
		case <-stable:
		case calls <- true:
			<-r.Context().Done()
		}
	}))
	defer web.Close()
	o, err := open(t.Context(), path, 5*time.Millisecond, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if _, err := o.record(t.Context(), "boiler", 20.5); err != nil {
		t.Fatal(err)
	}
	for n := range kills {
		sender := start(t, "-db", path, "deliver", web.URL)
		if err := sender.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-calls:
		case <-time.After(20 * time.Second):
			t.Errorf("after %d kills: got no call of the sender within 20s, want one", n)
		}
		_ = sender.Process.Kill()
		_ = sender.Wait()
	}
	close(stable)
	sender := start(t, "-db", path, "deliver", web.URL)
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	task, err := o.runner.Await(t.Context(), 1)
	if err != nil || task.State != jobs.Completed || task.Losses != kills {
		t.Errorf("got task %s (%s) with %d losses and error %v, want completed with %d losses", task.State,
			task.Error, task.Losses, err, kills)
	}
	_ = sender.Process.Kill()
	_ = sender.Wait()
}

// checkCommandLine checks with the command runner that the file has the right
// tasks.
func checkCommandLine(t *testing.T, path string, want int) {
	t.Helper()
	command := filepath.Join(t.TempDir(), "runner")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("build runner: got error %v, want none: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), command, "--db", path, "list", "-j", "reading.deliver", "-s", "completed", "-n",
		"0").Output()
	if got := strings.Count(string(out), "\n"); err != nil || got != want {
		t.Errorf("runner list: got %d lines and error %v, want %d lines", got, err, want)
	}
	out, err = exec.CommandContext(t.Context(), command, "--db", path, "show", "1").Output()
	if err != nil || !strings.Contains(string(out), "reading.deliver") {
		t.Errorf("runner show: got error %v and output %s, want the job reading.deliver", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), command, "--db", path, "logs", "1").CombinedOutput(); err != nil {
		t.Errorf("runner logs: got error %v, want none: %s", err, out)
	}
}

func TestRecordCountsAndStoresReadingTogether(t *testing.T) {
	o, err := open(t.Context(), filepath.Join(t.TempDir(), "outbox.db"), time.Second, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if _, err := o.record(t.Context(), "boiler", 20.5); err != nil {
		t.Fatal(err)
	}
	if _, err := o.record(t.Context(), strings.Repeat("x", 201), 1); err == nil {
		t.Error("a name that is too long for a lane: got no error, want one")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.record(ended, "boiler", 21); err == nil {
		t.Error("a cancelled context: got no error, want one")
	}
	r, err := o.record(t.Context(), "boiler", 21.5)
	if err != nil || r.Seq != 2 {
		t.Errorf("got reading %d and error %v, want reading 2", r.Seq, err)
	}
	tasks, err := o.runner.List(t.Context(), jobs.Filter{OldestFirst: true})
	if err != nil || len(tasks) != 2 || tasks[1].Lane != "boiler" || tasks[1].State != jobs.Blocked {
		t.Errorf("got tasks %+v and error %v, want two tasks, the second blocked in the lane boiler", tasks, err)
	}
}
