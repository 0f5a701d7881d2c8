package db_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// TestBackupUnderLoadHasEveryEarlierTask starts a backup while other goroutines
// add and finish tasks. The backup must have every task whose insert returned
// before the backup began.
func TestBackupUnderLoadHasEveryEarlierTask(t *testing.T) {
	d := dbtest.OpenAt(t, filepath.Join(t.TempDir(), "a.db"), db.Options{Create: true, Normal: true})
	spec := jobs.Command(commands.Command{Argv: []string{"true"}, Input: make([]byte, 4<<10)})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var last atomic.Int64 // last inserted id; all lower ids exist, too, because ids have no gaps here
	var load sync.WaitGroup
	load.Go(func() {
		for ctx.Err() == nil {
			added, err := d.Insert(t.Context(), []jobs.Spec{spec, spec}, time.Now())
			if err != nil {
				t.Error(err)
				return
			}
			last.Store(added[1].ID)
		}
	})
	w, err := d.Register(t.Context(), db.WorkerInfo{Lease: time.Minute, Slots: 4, StartedAt: time.Now()},
		[]db.ClaimJob{{Job: "command", MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	load.Go(func() {
		var finish []db.Finish
		for ctx.Err() == nil {
			result, err := w.Cycle(t.Context(), db.Cycle{Now: time.Now(), Look: true, Finish: finish,
				Claim: db.Claim{Free: 4, Lease: time.Minute}})
			if err != nil {
				t.Error(err)
				return
			}
			finish = nil
			for _, task := range result.Claimed {
				finish = append(finish, db.Finish{Task: task, Outcome: taskspec.Outcome{Started: time.Now(), Finished: time.Now()}})
			}
		}
	})
	for round := range 5 {
		for last.Load() < int64(200*(round+1)) {
			runtime.Gosched()
			if t.Failed() {
				t.FailNow()
			}
		}
		before := last.Load()
		to := filepath.Join(t.TempDir(), "copy.db")
		n, err := d.Backup(t.Context(), to, false)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(to)
		if err != nil || info.Size() != n || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Fatalf("got file info %+v and error %v, want mode 0600 and %d bytes", info, err, n)
		}
		copied := dbtest.OpenAt(t, to, db.Options{Normal: true})
		ids, err := copied.IDs(t.Context(), jobs.Filter{OldestFirst: true})
		if err != nil || int64(len(ids)) < before || ids[before-1] != before {
			t.Errorf("got %d tasks in the copy and error %v, want tasks 1 to %d and perhaps later ones", len(ids), err, before)
		}
		if damage, err := copied.Integrity(t.Context(), true); err != nil || damage != nil {
			t.Errorf("integrity of the copy: got damage %v and error %v, want neither", damage, err)
		}
		var mode string
		if err := dbtest.Raw(t, to).QueryRow(`PRAGMA journal_mode`).Scan(&mode); err != nil || mode != "wal" {
			t.Errorf("journal mode of the copy: got %q and error %v, want wal", mode, err)
		}
	}
	stop()
	load.Wait()
}

func TestBackupKeepsExistingFiles(t *testing.T) {
	dir := t.TempDir()
	d := dbtest.OpenAt(t, filepath.Join(dir, "a.db"), db.Options{Create: true, Normal: true})
	other := dbtest.OpenAt(t, filepath.Join(dir, "other.db"), db.Options{Create: true, Normal: true})
	if _, err := other.Insert(t.Context(), []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, time.Now()); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d.Path(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		to    string
		force bool
		want  error
	}{
		{there, false, jobs.ErrConflict}, {d.Path(), true, jobs.ErrConflict}, {filepath.Join(dir, "link"), true, jobs.ErrConflict},
		{d.Path() + "-wal", true, jobs.ErrConflict}, {other.Path(), true, jobs.ErrConflict}, {dir, true, jobs.ErrConflict},
		{filepath.Join(dir, "none", "x.db"), false, jobs.ErrNoDatabase},
	} {
		if _, err := d.Backup(t.Context(), test.to, test.force); !errors.Is(err, test.want) {
			t.Errorf("backup to %s: got error %v, want %v", test.to, err, test.want)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := d.Backup(stopped, filepath.Join(dir, "never.db"), false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled backup: got error %v, want %v", err, context.Canceled)
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "precious" {
		t.Errorf("existing file: got content %q and error %v, want it unchanged", text, err)
	}
	if _, err := d.Backup(t.Context(), there, true); err != nil {
		t.Errorf("backup with replace: got error %v, want none", err)
	}
	if info, err := os.Stat(there); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("replaced file: got file info %+v and error %v, want mode 0600", info, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name.Name(), ".part") || strings.HasPrefix(name.Name(), "never") {
			t.Errorf("got file %s, want no file of a failed backup", name.Name())
		}
	}
}

// TestBackupRemovesWhatKilledBackupsHaveLeft leaves partial copies of the same
// and of another name; one of them has been written to lately.
func TestBackupRemovesWhatKilledBackupsHaveLeft(t *testing.T) {
	d := dbtest.OpenAt(t, filepath.Join(t.TempDir(), "a.db"), db.Options{Create: true, Normal: true})
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".b.db.AAAAAAAA.part", ".b.db.AAAAAAAA.part-journal", ".c.db.AAAAAAAA.part",
		".b.db.new.part", ".b.db.CCCCCCCC.part"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, ".b.db.CCCCCCCC.part"), time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Backup(t.Context(), filepath.Join(dir, "b.db"), false); err != nil {
		t.Fatal(err)
	}
	const want = ".b.db.CCCCCCCC.part .b.db.new.part .c.db.AAAAAAAA.part b.db"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got files %s, want %s", got, want)
	}
}
