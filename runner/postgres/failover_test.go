package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestStandbyTakesOver kills a server under load, and a standby takes its
// place. With synchronous replication the standby has every confirmed write,
// and every task completes once. Workers and clients have an address with both
// servers, and continue without a restart.
func TestStandbyTakesOver(t *testing.T) {
	first := pgkit.Start(t, "fsync=off")
	second, err := first.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgx.Connect(t.Context(), first.Address("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}

	testkit.Within(t, patience, "the standby is a synchronous one", func() bool {
		var is bool
		err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')").Scan(&is)
		return err == nil && is
	})
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	at := "postgres://postgres@/postgres?" + url.Values{"host": {first.Dir + "," + second.Dir}, "port": {"5432,5432"},
		"target_session_attrs": {"read-write"}}.Encode()
	dir := t.TempDir()
	var seen runs
	var stops []func()
	for i := range 2 { // two workers with separate directories, as on two hosts
		r := open(t, at, runner.Options{Dir: filepath.Join(dir, fmt.Sprint(i))})
		r.Register(count.Handler(seen.handle))
		stops = append(stops, work(t, r, runner.WorkOptions{Concurrency: 5}))
	}

	client := open(t, at, runner.Options{})
	joined(t, client, 2)
	var answered []int64
	enqueue := func(n int) bool {
		task, err := client.Enqueue(t.Context(), count.With(n, jobs.MaxAttempts(1), jobs.Unique(fmt.Sprint(n))))
		if err == nil {
			answered = append(answered, task.ID)
		} else if !errors.Is(err, jobs.ErrBusy) && !errors.Is(err, jobs.ErrUnknown) {
			t.Errorf("enqueue: got error %v, want jobs.ErrBusy or jobs.ErrUnknown", err)
		}
		return err == nil
	}
	for n := range 150 {
		enqueue(n)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}

	enqueue(150) // returns an error, because no server takes writes
	if err := second.Promote(); err != nil {
		t.Fatal(err)
	}

	back := time.Now()
	before := seen.completed.Load() // no worker has completed a task on the new server yet
	n := 151
	testkit.Within(t, patience, "the client has found the other server", func() bool { n++; return enqueue(n) })
	for range 50 {
		n++
		enqueue(n)
	}

	testkit.Within(t, patience, "work goes on", func() bool { return seen.completed.Load() > before })
	t.Logf("work went on %v after the standby was promoted", time.Since(back).Round(time.Millisecond))
	ranOnce(t, client, &seen, answered, stops)
}
