// Package harness checks the guarantees of docs/reliability.md on the machine
// it runs on. It starts real worker processes with a demanding workload.
// Meanwhile the nemesis, which injects faults, kills, stops and starves them.
// After the run, evidence.judge compares two independent histories with the
// invariants: one that triggers in the database write, and the notes of clients
// and commands.
package harness

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

// These constants configure a run. The lease is much shorter than in
// production, so that many leases expire in a run of one minute. The nemesis
// stops processes for 0.5 to 2.5 leases.
const (
	Lease = time.Second
	Slots = 4                      // concurrency of each worker
	Grace = 300 * time.Millisecond // grace period of a worker that received SIGTERM

	workers   = 6 // number of workers; the last one runs functions only, as a program that embeds the library does
	enqueuers = 2
	// Enqueuers pause while this many functions are pending. While this many
	// commands are pending, they enqueue only functions.
	backlog = 40

	killServerEvery = 8 * time.Second // interval between kills of the server; fixed, because random intervals might give no kill

	drainWithin = 90 * time.Second // time limit for all tasks to finish after the last fault
	endWithin   = 15 * time.Second // time limit for workers to exit after SIGTERM
)

// ErrUnsupported is the error of Run on systems other than Linux.
var ErrUnsupported = errors.New("the selftest needs /proc and runs on Linux only")

// Options are the options of Run.
type Options struct {
	Dir      string        // directory in which Run creates its own directory
	For      time.Duration // how long the nemesis injects faults
	Seed     uint64        // seed of all random choices; it doesn't make the timing repeatable
	Runner   string        // path of the program runner
	Self     string        // path of the program with the roles; see RoleCommand
	Postgres bool          // whether the database is on a PostgreSQL server that Run starts and kills, and not in a SQLite file
	Progress func(phase string)
}

// Run runs the workload on a new database, injects faults and checks the
// histories. The report lists violations of the invariants. Run returns an
// error only if the run itself failed. It removes its directory if there is no
// violation.
func Run(ctx context.Context, o Options) (*Report, error) {
	if !supported {
		return nil, ErrUnsupported
	}

	dir, err := os.MkdirTemp(o.Dir, "runner-selftest-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // resolve symbolic links, because commands see the resolved path
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

	// A failed write of this file isn't an error, because Run also returns the
	// report.
	if text, err := json.MarshalIndent(r.report, "", "  "); err == nil {
		_ = os.WriteFile(filepath.Join(dir, "report.json"), text, 0o600)
	}

	return r.report, nil
}

// run is the state of one call of Run.
type run struct {
	Options
	workspace
	report    *Report
	notes     *notesFile
	db        *database
	processes *processes
	watcher   *watcher
	nemesis   *nemesis
	cluster   *cluster // the server that holds the database; nil for a SQLite file
	proxies   []*proxy
	offset    int64 // wall clock minus monotonic clock at the start of the run, in ms
}

func (r *run) allPhases(ctx context.Context) (err error) {
	if err := r.setUp(ctx); err != nil {
		return err
	}

	r.Progress("killing processes while they commit")
	if err := r.killDuringCommits(ctx); err != nil {
		return err
	}

	r.watcher = newWatcher(r.workspace, r.notes)
	r.Progress("killing and stopping workers for " + r.For.String())
	r.processes.startAll(r.Seed)
	r.injectFaults(ctx)
	r.nemesis.stop()
	r.processes.stopRole(enqueuerRole)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	r.Progress("waiting for the last tasks")
	if err := r.drain(ctx); err != nil {
		return err
	}

	r.processes.stopAll(endWithin)
	r.watcher.end()
	r.Progress("checking the history")
	return r.check(ctx)
}

// setUp calls the program under test, which creates the database. Then it adds
// the history triggers.
func (r *run) setUp(ctx context.Context) (err error) {
	r.offset = wallOffset()
	if r.notes, err = openNotes(r.workspace); err != nil {
		return err
	}
	if err := r.setUpServer(ctx); err != nil {
		return err
	}

	r.processes = newProcesses(r.workspace, r.Options, r.notes)
	if err := r.processes.runCommand(ctx, "schedule", "add", "ticks", "--cron", "@every 1s", "--overlap", "allow", "--queue", "b",
		"--label", tickLabel, "--max-losses", "1000", "--job", functionJob, "--args", `{"Kind":"quick","MS":5}`); err != nil {
		return err
	}

	r.db, err = install(ctx, r.workspace)
	return err
}

// killDuringCommits kills one enqueuer after the other during a commit. Each
// new enqueuer notes how long it takes to open the database that the killed
// enqueuer left.
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
				text, _ := os.ReadFile(p.log.Name())
				return fmt.Errorf("no enqueue was acknowledged: %w", cmp.Or(ctx.Err(), errors.New(string(bytes.TrimSpace(text)))))
			}
		}

		time.Sleep(time.Duration(random.IntN(4000)) * time.Microsecond)
		p.kill()
		_ = p.wait() // wait returns an error, because SIGKILL ended the process
		r.report.CommitKills++
	}

	return nil
}

// injectFaults lets the nemesis inject faults for the duration of the run.
func (r *run) injectFaults(ctx context.Context) {
	r.nemesis = newNemesis(r.workspace, r.processes, r.db, r.notes, rand.New(rand.NewPCG(r.Seed, 2)))
	r.nemesis.cluster = r.cluster
	if r.cluster != nil {
		r.nemesis.proxies = r.proxies[1:] // the nemesis injects no faults into the first proxy
	}

	began := time.Now()
	killAt, freezeAt := killServerEvery/2, freezeFirst
	for ctx.Err() == nil {
		if r.cluster != nil && time.Since(began) > killAt {
			killAt += killServerEvery
			r.nemesis.endServer()
		}
		// This check comes before the break below. So a freeze that is due
		// takes place even if the last fault lasted until the end of the run.
		if freezeAt < r.For && time.Since(began) > freezeAt {
			freezeAt += freezeEvery
			r.nemesis.freeze()
		}
		if time.Since(began) >= r.For {
			break
		}

		r.nemesis.injectOne()
	}

	r.report.Faults = r.nemesis.counts
}

// drain waits until all tasks have finished and all dead workers are marked as
// ended.
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
		// after the time limit, judge reports the tasks that aren't finished
		if left == 0 && strays == 0 || time.Since(began) > drainWithin {
			r.report.Figures.Drain = seconds(time.Since(began))
			return ctx.Err()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// cleanUp ends all processes of the run and closes all its connections, also
// after an error.
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

	if r.cluster != nil {
		r.cluster.close()
	}
}

// workspace is the directory of a run.
type workspace struct{ dir string }

func (w workspace) databaseAddress() string    { return w.addresses()[0] }
func (w workspace) notes() string              { return filepath.Join(w.dir, "notes") }
func (w workspace) locks() string              { return filepath.Join(w.dir, "locks") }
func (w workspace) logFile(name string) string { return filepath.Join(w.dir, name+".log") }

func percentile(list []time.Duration, p float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(p*float64(len(list))), len(list)-1)]
}
