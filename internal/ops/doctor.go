package ops

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/orphans"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// These are the possible results of a check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// These are the limits that the checks use.
const (
	walWarn    = 64 << 20           // warn above this: a reader probably keeps SQLite from truncating the WAL
	diskWarn   = 1 << 30            // warn below this; for a disk below 50 GiB, below 2 % of its size
	clockSlack = 5 * time.Second    // two clocks, or two readings of one, may differ by this much
	backupWarn = 8 * 24 * time.Hour // warn if the last backup is older than this
)

// Doctor is one run of "runner doctor".
type Doctor struct {
	Runner    *runner.Runner // nil if the database can't be opened
	Now       time.Time
	Full      bool   // whether to check every page of the file
	Path      string // path of the database
	OpenError error  // why the database can't be opened; nil if it can

	status func() (ui.Status, error) // reads it once, so that all checks describe the same moment
}

// reportFunc prints a check's result. try is something that the user can type;
// it may be empty.
type reportFunc func(status, message, try string)

// check is one of the checks of doctor. The output shows its name.
type check struct {
	name string
	run  func(context.Context, reportFunc) error
	open bool // whether the check reads the database
}

// checks returns the checks for this database. doctor checks a file of this
// host itself, and leaves the files of a server to the tools of the server. The
// order of the checks is a part of the JSON format.
func (d *Doctor) checks() []check {
	tasks := []check{
		{"clock", d.clock, true},
		{"workers", d.workers, true},
		{"queues", d.problems(queuesText, "paused", "no_queue", "no_job"), true},
		{"schedules", d.problems(schedulesText, "schedule_"), true},
	}
	if !db.ParseAddress(d.Path).LocalFile() {
		return append([]check{{"database", d.server, false}}, tasks...)
	}

	file := []check{
		{"database", d.database, false},
		{"filesystem", d.filesystem, false},
		{"permissions", d.permissions, false},
		{"integrity", d.integrity, true},
		{"wal", d.wal, true},
	}
	return append(slices.Concat(file, tasks), check{"backup", d.backup, true})
}

// Run runs every check and passes each result to print.
func (d *Doctor) Run(ctx context.Context, print func(Check) error) error {
	d.status = sync.OnceValues(func() (ui.Status, error) { return ui.ReadStatus(ctx, d.Runner, d.Now, nil) })
	for _, check := range d.checks() {
		if check.open && d.Runner == nil {
			continue
		}

		var printErr error
		report := func(status, message, try string) {
			if printErr == nil {
				printErr = print(Check{check.name, status, message, try})
			}
		}
		if err := check.run(ctx, report); err != nil { // a check that returns an error counts as failed
			f := ui.Explain(err)
			report(Fail, strings.Join(append([]string{f.What}, f.Why...), "; "), f.Try)
		}
		if printErr != nil {
			return printErr
		}
	}

	return nil
}

func (d *Doctor) database(_ context.Context, report reportFunc) error {
	if d.OpenError != nil {
		return d.OpenError
	}

	file, wal := db.Of(d.Runner).Size()
	report(OK, fmt.Sprintf("%s, schema %d, %s, WAL %s", admin.Path(d.Runner), db.SchemaVersion(),
		humanize.Size(file), humanize.Size(wal)), "")
	return nil
}

func (d *Doctor) filesystem(_ context.Context, report reportFunc) error {
	disk := db.DiskOf(d.Path)
	var words []string
	if disk.Kind != "" {
		words = append(words, disk.Kind)
	}
	if disk.Total > 0 {
		words = append(words, humanize.Size(disk.Free)+" free")
	}

	message := strings.Join(words, ", ")
	switch {
	case disk.ReadOnly:
		report(Fail, message+", mounted read-only",
			"remount it for writing; the kernel may have made it read-only after a disk error")
	case disk.Network:
		report(Fail, message+": locks are not reliable on a network filesystem", "--db PATH on a local disk")
	case disk.NoInodes:
		report(Fail, message+", no inodes left", "remove some files: the disk can't hold another one")
	case disk.Total > 0 && disk.Free < disk.Reserve:
		report(Fail, message,
			"free some space; with less than "+humanize.Size(disk.Reserve)+" no task is enqueued or started")
	case disk.Total > 0 && disk.Free < min(diskWarn, disk.Total/50):
		report(Warn, message, "")
	case message == "":
		report(OK, "unknown on this system", "")
	default:
		report(OK, message, "")
	}

	return nil
}

// permissions checks that only root and the worker's user may write the file.
// If no worker runs on this host, the file's owner counts as that user. Who
// calls doctor doesn't count: it may be root, or have only read access.
func (d *Doctor) permissions(ctx context.Context, report reportFunc) error {
	users, err := d.workerUsers(ctx)
	if err != nil {
		return err
	}

	writers := "root"
	for _, uid := range users {
		if err := db.Insecure(d.Path, uid); err != nil {
			return err
		}
		switch uid {
		case 0:
		case os.Geteuid():
			writers = "this user and root"
		default:
			writers = db.UserName(uid) + " and root"
		}
	}

	if info, err := os.Stat(d.Path); err == nil {
		report(OK, fmt.Sprintf("%v; only %s can write it", info.Mode(), writers), "")
	} else {
		report(OK, "only "+writers+" can write the directory", "")
	}

	return nil
}

// workerUsers returns the uids that run workers on this host. Without one it
// returns the file's owner; if that is root, or there is no file, this user.
func (d *Doctor) workerUsers(ctx context.Context) (users []int, err error) {
	if d.Runner != nil {
		workers, err := admin.Workers(ctx, d.Runner)
		if err != nil {
			return nil, err
		}
		for _, w := range localWorkers(workers) {
			if w.UID >= 0 && !slices.Contains(users, w.UID) {
				users = append(users, w.UID)
			}
		}
	}
	if users != nil {
		return users, nil
	}
	if uid, ok := db.FileOwner(d.Path); ok && uid != 0 {
		return []int{uid}, nil
	}

	return []int{os.Geteuid()}, nil
}

func (d *Doctor) integrity(ctx context.Context, report reportFunc) error {
	name := "quick_check"
	if d.Full {
		name = "integrity_check"
	}

	began := time.Now()
	damage, err := db.Of(d.Runner).Integrity(ctx, d.Full)
	if err != nil {
		return err
	}
	if len(damage) > 0 {
		report(Fail, name+": "+strings.Join(damage, "; "), "stop the workers, keep the file, restore a backup")
		return nil
	}
	if err := db.Of(d.Runner).Foreign(ctx); err != nil {
		return err
	}

	report(OK, fmt.Sprintf("%s in %s", name, humanize.Took(time.Since(began))), "")
	return nil
}

func (d *Doctor) wal(_ context.Context, report reportFunc) error {
	_, wal := db.Of(d.Runner).Size()
	if wal < walWarn {
		report(OK, humanize.Size(wal), "")
		return nil
	}

	var names []string
	for _, p := range db.Of(d.Runner).Readers() {
		names = append(names, fmt.Sprintf("pid %d (%s)", p.PID, p.Name))
	}

	message, try := humanize.Size(wal)+"; a process reads, or was reading, for long", ""
	if len(names) > 0 {
		message = humanize.Size(wal) + "; its reset waits for " + strings.Join(names, ", ")
		try = "end the process or its transaction"
	}

	report(Warn, message, try)
	return nil
}

func (d *Doctor) clock(ctx context.Context, report reportFunc) error {
	latest, err := db.Of(d.Runner).MaxTimestamp(ctx)
	if err != nil {
		return err
	}

	// not d.Now: workers have written to the database since
	if ahead := time.Until(latest); ahead > clockSlack {
		report(Warn, fmt.Sprintf("the clock is %s behind the latest time in the database, %s",
			humanize.Age(ahead), humanize.Clock(latest, d.Now)), "timedatectl status")
		return nil
	}

	fine := func(ui.Status) string { return "no time in the database is in the future" }
	return d.problems(fine, "deletion_paused")(ctx, report)
}

func (d *Doctor) workers(ctx context.Context, report reportFunc) error {
	s, err := d.status()
	if err != nil {
		return err
	}

	now := ui.Ticking(s.Schedules) // number of tasks and schedules that need a worker now
	for _, q := range s.Queues {
		now += q.Counts[jobs.Pending] + q.Counts[jobs.Running]
	}

	absent := report
	if now > 0 {
		absent = func(_, message, try string) { report(Fail, message, try) }
	}
	if s.Alive > 0 {
		report(OK, fmt.Sprintf("%s, %d of %d slots busy", humanize.Plural(s.Alive, "worker"), s.Busy, s.Slots), "")
	} else if !reportProblems(s.Problems, absent, "no_worker") {
		report(Warn, "no worker runs; no task waits", "")
	}

	reportProblems(s.Problems, report, "lost_worker", "stuck", "cursor_behind")
	oldPrograms(s.Workers, report)
	return d.orphans(ctx, report)
}

// orphans reports processes that still run although their attempt has ended.
func (d *Doctor) orphans(ctx context.Context, report reportFunc) error {
	list, err := orphans.Find(ctx, d.Runner)
	for _, p := range list {
		name := fmt.Sprintf("process %d (%s, state %s) of task %d", p.PID, p.Name, p.State, p.TaskID)
		switch {
		case p.Unawaited:
			report(Warn, fmt.Sprintf("%s still runs as user %d although its attempt has ended; the task can start again",
				name, p.UID), fmt.Sprintf("as root or as that user: kill %d", p.PID))
		case p.Alone:
			report(Warn, name+" still runs although its worker has ended",
				"runner work kills it before it runs the task again")
		default: // a worker of this database runs, and it has already tried to kill this orphan process
			report(Fail, name+" cannot be killed, so the task cannot start again",
				fmt.Sprintf("as root: cat /proc/%d/stack", p.PID))
		}
	}

	return err
}

// problems returns a check that reports the problems of the status whose codes
// begin with one of the prefixes. Without one, fine is what it reports.
func (d *Doctor) problems(
	fine func(ui.Status) string, prefixes ...string,
) func(context.Context, reportFunc) error {
	return func(_ context.Context, report reportFunc) error {
		s, err := d.status()
		if err == nil && !reportProblems(s.Problems, report, prefixes...) {
			report(OK, fine(s), "")
		}
		return err
	}
}

func queuesText(s ui.Status) string {
	pending := 0
	for _, q := range s.Queues {
		pending += q.Counts[jobs.Pending]
	}
	return humanize.Plural(len(s.Queues), "queue") + ", " + humanize.TasksWait(pending)
}

func schedulesText(s ui.Status) string { return humanize.Plural(len(s.Schedules), "schedule") }

// reportProblems reports the problems whose codes begin with one of the
// prefixes, and whether there was one.
func reportProblems(problems []ui.Problem, report reportFunc, prefixes ...string) (found bool) {
	for _, problem := range problems {
		begins := func(prefix string) bool { return strings.HasPrefix(problem.Code, prefix) }
		if slices.ContainsFunc(prefixes, begins) {
			found = true
			report(Warn, problem.Message, problem.Try)
		}
	}
	return found
}
