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
	"example.com/runner/runner"
)

// TestMain runs the program instead of the tests if the environment says so. The tests start and kill such processes.
func TestMain(m *testing.M) {
	if os.Getenv("OUTBOX_TEST") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// server is a server that often fails, before or after it has stored a reading.
type server struct {
	mu     sync.Mutex
	calm   bool
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
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	luck := rand.IntN(10)
	if !s.calm && luck < 3 {
		http.Error(w, "try later", http.StatusServiceUnavailable)
		return
	}
	if key := reading.key(); !s.seen[key] {
		s.seen[key] = true
		s.stored[reading.Device] = append(s.stored[reading.Device], reading.Seq)
	}
	if !s.calm && luck < 5 {
		panic(http.ErrAbortHandler) // the reading is stored, but the sender gets no answer
	}
	w.WriteHeader(http.StatusNoContent)
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

// TestEachReadingArrivesOnceAndInOrder records readings, kills the sender again and again, and uses a server that fails half of the time.
func TestEachReadingArrivesOnceAndInOrder(t *testing.T) {
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
		err := o.runner.Changes(t.Context(), func() (bool, error) { // until the sender has made some calls
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
	s.calm = true
	s.mu.Unlock()
	sender := start(t, "-db", path, "deliver", web.URL)
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	err = o.runner.Changes(t.Context(), func() (bool, error) {
		n, err := o.runner.Count(t.Context(), jobs.Filter{States: jobs.Unfinished()})
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

	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range devices {
		device := fmt.Sprint("device", d)
		if got := s.stored[device]; len(got) != readings {
			t.Errorf("%s: %d readings arrived, %d were recorded", device, len(got), readings)
		}
		for i, seq := range s.stored[device] {
			if seq != int64(i+1) {
				t.Errorf("%s: reading %d arrived as number %d", device, seq, i+1)
			}
		}
	}
	if s.calls <= devices*readings {
		t.Errorf("%d calls for %d readings: the server was not flaky", s.calls, devices*readings)
	}
	t.Logf("%d calls for %d readings, %d kills", s.calls, devices*readings, kills)
	seenByTheCommandLine(t, path, devices*readings)
}

// TestAReadingOutlivesAnyNumberOfKills checks that a reading survives if the machine is switched off again and again during its delivery.
func TestAReadingOutlivesAnyNumberOfKills(t *testing.T) {
	const kills = 5 // more losses than the default limit of a task
	path := filepath.Join(t.TempDir(), "outbox.db")
	calls, calm := make(chan bool), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only after the body does the server notice that the sender is dead
		select {
		case <-calm:
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
			t.Errorf("it is not delivered any more after %d kills", n)
		}
		_ = sender.Process.Kill()
		_ = sender.Wait()
	}
	close(calm)
	sender := start(t, "-db", path, "deliver", web.URL)
	if err := sender.Start(); err != nil {
		t.Fatal(err)
	}
	task, err := o.runner.Await(t.Context(), 1)
	if err != nil || task.State != jobs.Completed || task.Losses != kills {
		t.Errorf("%s after %d losses: %s %v", task.State, task.Losses, task.Error, err)
	}
	_ = sender.Process.Kill()
	_ = sender.Wait()
}

// seenByTheCommandLine checks the tasks of the file with the runner command.
func seenByTheCommandLine(t *testing.T, path string, want int) {
	t.Helper()
	command := filepath.Join(t.TempDir(), "runner")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), command, "--db", path, "list", "-j", "reading.deliver", "-s", "completed", "-n",
		"0").Output()
	if err != nil || strings.Count(string(out), "\n") != want {
		t.Errorf("runner list: %d lines, want %d: %v", strings.Count(string(out), "\n"), want, err)
	}
	out, err = exec.CommandContext(t.Context(), command, "--db", path, "show", "1").Output()
	if err != nil || !strings.Contains(string(out), "reading.deliver") {
		t.Errorf("runner show: %v: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), command, "--db", path, "logs", "1").CombinedOutput(); err != nil {
		t.Errorf("runner logs: %v: %s", err, out)
	}
}

func TestAReadingIsCountedAndKeptTogether(t *testing.T) {
	o, err := open(t.Context(), filepath.Join(t.TempDir(), "outbox.db"), time.Second, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if _, err := o.record(t.Context(), "boiler", 20.5); err != nil {
		t.Fatal(err)
	}
	if _, err := o.record(t.Context(), strings.Repeat("x", jobs.MaxText+1), 1); err == nil { // the name is too long for a lane
		t.Error("recorded")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.record(ended, "boiler", 21); err == nil {
		t.Error("recorded")
	}
	r, err := o.record(t.Context(), "boiler", 21.5)
	if err != nil || r.Seq != 2 {
		t.Errorf("reading %d, want 2: %v", r.Seq, err)
	}
	tasks, err := o.runner.List(t.Context(), jobs.Filter{}, runner.Page{Oldest: true})
	if err != nil || len(tasks) != 2 || tasks[1].Lane != "boiler" || tasks[1].State != jobs.Blocked {
		t.Errorf("%+v, %v", tasks, err)
	}
}
