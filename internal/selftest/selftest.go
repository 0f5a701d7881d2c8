// Package selftest proves the promise of docs/reliability.md, or finds where it does not hold: real worker processes run a workload
// that was made to hurt, while a nemesis kills, stops and starves them. Afterwards two histories are replayed against the
// invariants: what triggers in the database saw, and what clients and commands wrote down by themselves.
//
// The judge does not use what it judges. This package opens the database with SQLite alone, knows the words and rules of package jobs,
// and gets at the product by its program: command lines, and processes whose part in the play main fills in (see Roles).
package selftest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The cast of a run. The lease is far shorter than any user's, so that a run of a minute sees many of them end; the stops last for
// 0.5 to 2.5 leases.
const (
	Lease = time.Second
	Slots = 4                      // of a worker
	Grace = 300 * time.Millisecond // of a worker that is told to stop

	workers   = 6 // the last of them runs functions only, as a library would
	enqueuers = 2
	backlog   = 40 // pending tasks at which enqueuers pause

	killServerEvery = 8 * time.Second // by the clock: by chance it would be never, in a short run

	drainWithin = 90 * time.Second // for every task to end when the nemesis is gone
	endWithin   = 15 * time.Second // for workers to end when they are told to
)

// ErrUnsupported says that this system has no torture yet.
var ErrUnsupported = errors.New("the selftest looks into /proc: it runs on Linux only")

// Options of Run.
type Options struct {
	Dir      string        // a directory for this run is made in it
	For      time.Duration // how long the nemesis acts
	Seed     uint64        // of every choice that is made; the machine's timing is not repeatable
	Path     string        // the program to torture
	Name     string        // its argv[0]
	Server   *Server       // the database is there; nil: it is a file
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Phase        string // commits, torture, drain, check
	Done, Of     time.Duration
	Faults, Left int // kills and stops so far; tasks that have not ended, when that is looked at
}

// Run tortures a new database and judges what happened. An error says that the run itself could not be done: violations are no errors, but
// stand in the report. The directory of a run without any is removed.
func Run(ctx context.Context, o Options) (*Report, error) {
	if !supported {
		return nil, ErrUnsupported
	}
	dir, err := os.MkdirTemp(o.Dir, "runner-selftest-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as commands are told of it
	}
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, workspace: workspace{dir}, report: newReport(o, dir)}
	err = r.allPhases(ctx)
	r.cleanUp()
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), os.RemoveAll(dir))
	case err != nil:
		return nil, fmt.Errorf("%w (its files are in %s)", err, dir)
	case len(r.report.Violations) == 0:
		r.report.Dir = ""
		return r.report, os.RemoveAll(dir)
	}
	if text, err := json.MarshalIndent(r.report, "", "  "); err == nil { // beside what it tells of; that it cannot be written must not hide it
		_ = os.WriteFile(filepath.Join(dir, "report.json"), text, 0o600)
	}
	return r.report, nil
}

// run is one run.
type run struct {
	Options
	workspace
	report    *Report
	notes     *notesFile
	db        *database
	processes *processes
	watcher   *watcher
	nemesis   *nemesis
	proxies   []*proxy
	offset    int64 // of the wall clock, when the run began
}

func (r *run) allPhases(ctx context.Context) (err error) {
	if err := r.setUp(ctx); err != nil {
		return err
	}
	r.reportProgress(Progress{Phase: "commits"})
	if err := r.killDuringCommits(ctx); err != nil {
		return err
	}
	r.watcher = newWatcher(r.workspace, r.notes)
	r.processes.startAll(r.Seed)
	r.injectFaults(ctx)
	r.nemesis.stop()
	r.processes.stopRole(enqueuerRole)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.processes.stopAll(endWithin)
	r.watcher.end()
	r.reportProgress(Progress{Phase: "check"})
	return r.check(ctx)
}

// open makes the database, by the program itself, and puts the triggers of history 1 into it.
func (r *run) setUp(ctx context.Context) (err error) {
	r.offset = wallOffset()
	if r.notes, err = openNotes(r.workspace); err != nil {
		return err
	}
	if err := r.setUpServer(ctx); err != nil {
		return err
	}
	r.processes = newProcesses(r.workspace, r.Path, r.Name, r.notes)
	if err := r.processes.runCommand(ctx, "schedule", "add", "ticks", "--cron", "@every 1s", "--overlap", "allow", "--queue", "b", "--label", tickLabel,
		"--max-losses", "1000", "--job", functionJob, "--args", `{"Kind":"quick","MS":5}`); err != nil {
		return err
	}
	r.db, err = install(ctx, r.workspace)
	return err
}

// commits kills processes while they commit, one after the other, and takes the time that the next one needs to open what they left.
func (r *run) killDuringCommits(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 1))
	for i := range max(5, min(60, int(r.For.Seconds()))) {
		before := r.notes.size()
		p, err := r.processes.start(fmt.Sprintf("commit%d", i), "enqueue", fmt.Sprint(r.Seed+uint64(i)), "0")
		if err != nil {
			return err
		}
		for began := time.Now(); r.notes.count(before, opAck) < 3; time.Sleep(time.Millisecond) {
			if time.Since(began) > 30*time.Second || ctx.Err() != nil {
				p.kill()
				_ = p.wait()
				talk, _ := os.ReadFile(p.log.Name())
				return fmt.Errorf("no enqueue was acknowledged: %w", cmp.Or(ctx.Err(), errors.New(string(bytes.TrimSpace(talk)))))
			}
		}
		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
		p.kill()
		_ = p.wait() // it was killed
		r.report.CommitKills++
	}
	return nil
}

// torture lets the nemesis act.
func (r *run) injectFaults(ctx context.Context) {
	r.nemesis = newNemesis(r.workspace, r.processes, r.db, r.notes, rand.New(rand.NewPCG(r.Seed, 2)))
	r.nemesis.server, r.nemesis.proxies = r.Server, r.proxies
	began := time.Now()
	killAt, freezeAt := killServerEvery/2, freezeFirst
	for ctx.Err() == nil && time.Since(began) < r.For {
		if r.Server != nil && time.Since(began) > killAt {
			killAt += killServerEvery
			r.nemesis.killServer()
		}
		if time.Since(began) > freezeAt {
			freezeAt += freezeEvery
			r.nemesis.freeze()
		}
		r.reportProgress(Progress{Phase: "faults", Done: time.Since(began), Of: r.For, Faults: r.nemesis.killsAndStops()})
		r.nemesis.injectOne()
	}
	r.report.Faults = r.nemesis.counts
}

// drain waits until every task has ended, and every dead worker has been buried.
func (r *run) drain(ctx context.Context) error {
	if err := r.processes.runCommand(ctx, "schedule", "pause", "ticks"); err != nil {
		return err
	}
	began := time.Now()
	for {
		left, strays, err := r.db.unfinished(ctx, r.processes.workerPIDs())
		if err != nil {
			return err
		}
		r.reportProgress(Progress{Phase: "drain", Done: time.Since(began), Faults: r.nemesis.killsAndStops(), Left: left})
		if left == 0 && strays == 0 || time.Since(began) > drainWithin { // then the check says what is left
			r.report.Figures.Drain = seconds(time.Since(began))
			return ctx.Err()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// end leaves no process behind, however the run ended.
func (r *run) cleanUp() {
	if r.nemesis != nil {
		r.nemesis.stop()
	}
	if r.processes != nil {
		r.processes.killAll()
	}
	if r.watcher != nil {
		r.watcher.end()
		r.watcher.killRemaining()
	}
	if r.db != nil {
		r.db.close()
	}
	for _, p := range r.proxies {
		p.close()
	}
}

func (r *run) reportProgress(p Progress) {
	if r.Progress != nil {
		r.Progress(p)
	}
}

// stage is the directory of a run.
type workspace struct{ dir string }

func (w workspace) databaseAddress() string { return w.addresses()[0] }
func (w workspace) notes() string           { return filepath.Join(w.dir, "notes") }
func (w workspace) locks() string           { return filepath.Join(w.dir, "locks") }
func (w workspace) log(name string) string  { return filepath.Join(w.dir, name+".log") }

func percentile(list []time.Duration, p float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(p*float64(len(list))), len(list)-1)]
}
