package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/runner/db/dbtest/fault"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// These tests use the method of SQLite's own tests. A test repeats the same
// steps many times. In the first run the first operation on the disk fails, in
// the second run the second operation, and so on, until a run ends without a
// failure. The kinds of failures are a held lock, a full disk, an I/O error, an
// error after the commit, the death of the process and a power cut. After each
// run the test opens the file again. The file must be undamaged and must have
// every confirmed write, and a worker must be able to finish all tasks.

// stride is the distance between two operations that a test makes fail.
// Failures of neighbouring operations mostly have the same effect, so a few
// suffice here: make failures sets the flag to 1, and each operation fails
// once.
var stride = flag.Int("stride", 37, "take every so many points at which a disk can fail")

// point makes the n-th operation for which counts(op) is true fail with an
// error code, and with ever all later ones, too.
func point(disk *fault.Disk, n int, counts func(fault.Op) bool, code fault.Code, ever bool) (hit *bool) {
	hit = new(bool)
	disk.Decide(func(e fault.Event) fault.Code {
		if !counts(e.Op) {
			return fault.OK
		}
		n--
		if n > 0 || n < 0 && !ever {
			return fault.OK
		}
		*hit = true
		return code
	})
	return hit
}

var failures = map[string]struct {
	code   fault.Code
	counts func(fault.Op) bool
}{
	"the lock is held":        {fault.Busy, func(op fault.Op) bool { return op == fault.Lock }},
	"the disk is full":        {fault.Full, func(op fault.Op) bool { return op == fault.Write || op == fault.Truncate }},
	"an error of the disk":    {fault.IOErr, func(op fault.Op) bool { return op != fault.Lock && op != fault.Committed }},
	"an error after a commit": {fault.IOErr, func(op fault.Op) bool { return op == fault.Committed }},
}

// kit holds a database file that the test creates once and copies for each run.
type kit struct {
	dir   string
	image fault.Image
	runs  int
}

func newKit(t *testing.T, o Options) *kit {
	t.Helper()
	k := &kit{dir: t.TempDir()}
	path := filepath.Join(k.dir, "new.db")
	o.Create = true
	d, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	k.image = fault.Image{"": testkit.ReadFile(t, path)}
	return k
}

func (k *kit) save(t *testing.T, image fault.Image) (path string) {
	t.Helper()
	k.runs++
	path = filepath.Join(k.dir, fmt.Sprintf("%d.db", k.runs))
	if err := image.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	patience = Options{BusyTimeout: 3 * time.Millisecond}
	onFlash  = Options{BusyTimeout: 3 * time.Millisecond, Flash: time.Hour}
)

func TestScenarioSurvivesEveryFailure(t *testing.T) { everyFailure(t, patience) }

func TestScenarioOnFlashSurvivesEveryFailure(t *testing.T) { everyFailure(t, onFlash) }

func everyFailure(t *testing.T, o Options) {
	t.Helper()
	clean := openTest(t)
	if err := newScenario(clean).run(false); err != nil {
		t.Fatal(err)
	}
	want := summary(t, clean)
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, o)
			points, every := 0, *stride
			// The stride is shorter for these two failures: they can hit only
			// about thirty operations, and each hit has a different effect.
			rare := name == "an error after a commit" || name == "the lock is held"
			if rare {
				every = max(every/5, 1)
			}
			for n, met := 1, true; met; n += every {
				for _, ever := range []bool{false, true} {
					path := k.save(t, k.image)
					disk := fault.Under(t, path)
					hit := point(disk, n, f.counts, f.code, ever)
					l := newScenario(nil)
					d, err := Open(t.Context(), path, o)
					if err == nil {
						l.d = d
						err = l.run(false)
					}
					// with "an error of the disk", err may be nil, because
					// SQLite may ignore a failed read or truncation
					if err == nil && *hit && ever && name != "an error of the disk" {
						t.Errorf("point %d: got no error, want one, because all operations from there on fail", n)
					}
					if met = *hit; ever { // a single failure may still hit Close; failures of all operations end before Close
						disk.Decide(nil)
					}
					if d != nil {
						_ = d.Close()
					}
					disk.Decide(nil)
					check(t, fmt.Sprintf("point %d, ever %v (%v)", n, ever, err), path, l)
				}
				if rare || n/every%3 == 0 {
					k.again(t, o, n, f.counts, f.code, want)
				}
				points = n
			}
			t.Log(points, "points,", k.runs, "runs")
		})
	}
}

// again makes one operation fail, and repeats the step that has failed. At the
// end, the database must have the same state as without the failure.
func (k *kit) again(t *testing.T, o Options, n int, counts func(fault.Op) bool, code fault.Code, want []string) {
	t.Helper()
	path := k.save(t, k.image)
	disk := fault.Under(t, path)
	point(disk, n, counts, code, false)
	d, err := Open(t.Context(), path, o)
	if err != nil {
		if d, err = Open(t.Context(), path, o); err != nil {
			t.Fatalf("point %d: open again: got error %v, want none", n, err)
		}
	}
	defer d.Close()
	if err := newScenario(d).run(true); err != nil {
		t.Errorf("point %d: with repeated steps: got error %v, want none", n, err)
		return
	}
	disk.Decide(nil)
	for i, line := range summary(t, d) {
		if i >= len(want) || line != want[i] {
			t.Errorf("point %d: with repeated steps: got\n%s\nwant, as without a failure,\n%s", n, line, want[min(i, len(want)-1)])
		}
	}
}

// TestScenarioSurvivesKillsAndPowerCuts saves the files before each change of a
// file, in two forms: as a kill would leave them, with all data, and as a power
// cut would leave them, with the synced data only. Then it checks each saved
// state.
func TestScenarioSurvivesKillsAndPowerCuts(t *testing.T) { killsAndPowerCuts(t, Options{}) }

// TestScenarioOnFlashSurvivesKillsAndPowerCuts repeats
// TestScenarioSurvivesKillsAndPowerCuts with Options.Flash. A power cut may
// then undo the writes since the last sync, although their calls have returned.
// The syncs that Options.Flash makes do not go through SQLite, so this test
// does not see them.
func TestScenarioOnFlashSurvivesKillsAndPowerCuts(t *testing.T) { killsAndPowerCuts(t, onFlash) }

func killsAndPowerCuts(t *testing.T, o Options) {
	t.Helper()
	k := newKit(t, o)
	path := k.save(t, k.image)
	disk := fault.Under(t, path)
	l := newScenario(nil)
	type moment struct {
		image    fault.Image
		scenario scenario
		name     string
	}
	var moments []moment
	seen := map[[32]byte]bool{}
	keep := func(name string, image fault.Image, inserted []int64, finished []ClaimID) {
		hash := sha256.New()
		for _, suffix := range slices.Sorted(maps.Keys(image)) {
			fmt.Fprintf(hash, "%s %d ", suffix, len(image[suffix]))
			hash.Write(image[suffix])
		}
		fmt.Fprint(hash, inserted, finished, l.startedOnce)
		if sum := [32]byte(hash.Sum(nil)); !seen[sum] {
			seen[sum] = true
			moments = append(moments, moment{image, scenario{inserted: slices.Clone(inserted), finished: slices.Clone(finished),
				startedOnce: l.startedOnce, deleting: maps.Clone(l.deleting)}, name})
		}
	}
	n := 0
	disk.Decide(func(e fault.Event) fault.Code {
		if e.Op.Changes() {
			n++
			keep(fmt.Sprintf("killed before %v %d", e.Op, n), disk.Killed(), l.inserted, l.finished)
			onDisk, ends := l.inserted, l.finished
			if o.Flash > 0 {
				onDisk, ends = l.syncedInserts, l.syncedFinishes
			}
			keep(fmt.Sprintf("power cut before %v %d", e.Op, n), disk.PowerCut(), onDisk, ends)
		}
		return fault.OK
	})
	var err error
	if l.d, err = Open(t.Context(), path, o); err != nil {
		t.Fatal(err)
	}
	if err := l.run(false); err != nil {
		t.Fatal(err)
	}
	if err := l.d.Close(); err != nil {
		t.Fatal(err)
	}
	keep("at the end", disk.PowerCut(), l.inserted, l.finished)
	for i := 0; i < len(moments); i += *stride {
		m := moments[i]
		check(t, m.name, k.save(t, m.image), &m.scenario)
	}
	t.Log(n, "changes,", len(moments), "different states of the files")
	if len(moments) < 100 {
		t.Errorf("got %d different states of the files, want at least 100", len(moments))
	}
}

// check opens a database after a failure. It checks that the file is undamaged,
// that it has every confirmed write, and that a worker can finish every task.
func check(t *testing.T, name, path string, l *scenario) {
	t.Helper()
	fault.Under(t, path) // the simulated disk does not sync the real one, so the test is faster
	d, err := Open(t.Context(), path, Options{Normal: true})
	if err != nil {
		t.Errorf("%s: open again: got error %v, want none", name, err)
		return
	}
	defer d.Close()
	ctx := t.Context()
	if found, err := d.Integrity(ctx, true); err != nil || len(found) > 0 {
		t.Errorf("%s: integrity_check: got problems %v and error %v, want neither", name, found, err)
	}
	var broken []string
	if err := d.read.Select(&broken, `SELECT "table" FROM pragma_foreign_key_check`); err != nil || len(broken) > 0 {
		t.Errorf("%s: foreign_key_check: got tables %v and error %v, want neither", name, broken, err)
	}
	state := map[int64]jobs.Task{}
	tasks, err := d.List(ctx, jobs.Filter{})
	if err != nil {
		t.Errorf("%s: list: got error %v, want none", name, err)
	}
	for _, task := range tasks {
		state[task.ID] = task
	}
	for _, id := range l.inserted {
		if state[id].ID == 0 && !l.deleting[id] {
			t.Errorf("%s: got no task %d, want it, because its insert was confirmed", name, id)
		}
	}
	for _, c := range l.finished {
		attempts, err := d.Attempts(ctx, c.ID)
		if err != nil || !l.deleting[c.ID] && !slices.ContainsFunc(attempts,
			func(a Attempt) bool { return a.GenerationID == c.GenerationID }) {
			t.Errorf("%s: got attempts %+v of task %d and error %v, want generation %d, because its finish was confirmed",
				name, attempts, c.ID, err, c.GenerationID)
		}
	}
	if l.startedOnce && state[7].State == jobs.Pending {
		t.Errorf("%s: got task 7 pending, want another state, because it has started and may start only once", name)
	}
	if input, err := d.Input(ctx, 2); state[2].ID != 0 && (err != nil || !bytes.Equal(input, []byte("abc"))) {
		t.Errorf("%s: got input %q and error %v, want abc", name, input, err)
	}
	drain(t, name, d)
}

// drain does the work of the next worker: it takes over the tasks of dead
// workers and runs all tasks.
func drain(t *testing.T, name string, d *DB) {
	t.Helper()
	ctx, at := context.Background(), now().Add(24*time.Hour)
	w, err := d.Register(ctx, WorkerInfo{Name: "next", Lease: time.Minute, StartedAt: at},
		[]ClaimJob{{Job: commands.Job, MaxAttempts: 1}})
	if err != nil {
		t.Errorf("%s: register: got error %v, want none", name, err)
		return
	}
	owners, err := w.Owners(ctx)
	for _, o := range owners {
		if _, err := w.ReapDead(ctx, o.Number, at); err != nil {
			t.Errorf("%s: reap: got error %v, want none", name, err)
		}
	}
	if err := d.Resume(ctx, []string{"default"}); err != nil {
		t.Errorf("%s: resume: got error %v, want none", name, err)
	}
	var finish []Finish
	for range 20 {
		result, cycleErr := w.Cycle(ctx, Cycle{Now: at, Look: true, Finish: finish, Claim: Claim{Free: 10, Lease: time.Minute, Idle: true}})
		if err = cycleErr; err != nil || len(result.Claimed) == 0 {
			break
		}
		finish = nil
		for _, task := range result.Claimed {
			finish = append(finish, Finish{Task: task, Outcome: taskspec.Outcome{Started: at, Finished: at, ExitCode: new(0)}})
		}
	}
	if err != nil {
		t.Errorf("%s: work: got error %v, want none", name, err)
	}
	left, err := d.List(ctx, jobs.Filter{States: taskspec.AllStates()[:5]})
	if err != nil || len(left) > 0 {
		var states []string
		for _, task := range left {
			states = append(states, fmt.Sprintf("%d %s", task.ID, task.State))
		}
		t.Errorf("%s: got unfinished tasks %v and error %v, want neither", name, states, err)
	}
}
