// Package doctor implements the checks of runner doctor.
package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/record"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The results of a check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// The thresholds of the checks.
const (
	walMost    = 64 << 20        // size to which the log is truncated when no reader prevents it
	diskWarn   = 1 << 30         // free bytes; a fiftieth of the disk if that is less
	clockSlack = 5 * time.Second // tolerated difference between the clocks of two machines, or between two reads of one clock
	lateMost   = time.Minute     // tolerated delay of a schedule's tick
	othersWait = time.Second     // time limit for each of the other databases
)

// Doctor is one run of runner doctor.
type Doctor struct {
	Runner    *runner.Runner // nil if the database cannot be opened
	Now       time.Time
	Full      bool     // check every page of the file
	Path      string   // path of the database
	Others    []string // databases that runner would find if this one were not named
	OpenError error    // why the database cannot be opened; nil if it can
}

// Run runs every check in the order that the JSON contract defines, and passes each result to tell.
func (e *Doctor) Run(ctx context.Context, tell func(record.Check) error) error {
	type check struct {
		name string
		make func(context.Context, func(status, message, try string)) error
		open bool // whether the check needs the open database
	}
	checks := []check{
		{"database", e.database, false}, {"filesystem", e.filesystem, false}, {"permissions", e.permissions, false},
		{"integrity", e.integrity, true}, {"wal", e.wal, true}, {"clock", e.clock, true}, {"workers", e.workers, true},
		{"queues", e.queues, true}, {"schedules", e.schedules, true}, {"other db", e.otherDB, false},
	}
	if admin.OnServer(e.Path) {
		checks = slices.Insert(checks, 1, check{"messages", e.messages, true})
	}
	for _, check := range checks {
		if check.open && e.Runner == nil {
			continue
		}
		var told error
		err := check.make(ctx, func(status, message, try string) {
			if told == nil {
				told = tell(record.Check{Check: check.name, Status: status, Message: message, Try: record.Known(try)})
			}
		})
		if err != nil { // a check that cannot run has failed
			f := failure.Explain(err)
			told = tell(record.Check{Check: check.name, Status: Fail, Message: strings.Join(append([]string{f.What}, f.Why...), "; "),
				Try: record.Known(f.Try)})
		}
		if told != nil {
			return told
		}
	}
	return nil
}

func (e *Doctor) database(_ context.Context, tell func(status, message, try string)) error {
	if e.OpenError != nil {
		return e.OpenError
	}
	file, wal := admin.Size(e.Runner)
	if server := admin.Server(e.Runner); server != nil {
		return e.server(server, file, tell)
	}
	tell(OK, fmt.Sprintf("%s, schema %d, %s, WAL %s", e.Runner.Path(), admin.SchemaVersion(), humanize.Size(file), humanize.Size(wal)), "")
	return nil
}

func (e *Doctor) filesystem(_ context.Context, tell func(status, message, try string)) error {
	if admin.OnServer(e.Path) {
		tell(OK, "the server's own", "")
		return nil
	}
	disk := admin.DiskOf(e.Path)
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
		tell(Fail, message+", mounted read-only", "mount it for writing; a kernel that meets an error of the disk takes that away")
	case disk.Network:
		tell(Fail, message+": a network filesystem, whose locks cannot be trusted", "--db on a local disk")
	case disk.Total > 0 && disk.Free < disk.Reserve:
		tell(Fail, message, "free some space: below "+humanize.Size(disk.Reserve)+" nothing is enqueued or started")
	case disk.Total > 0 && disk.Free < min(diskWarn, disk.Total/50):
		tell(Warn, message, "")
	case message == "":
		tell(OK, "cannot be told on this system", "")
	default:
		tell(OK, message, "")
	}
	return nil
}

func (e *Doctor) permissions(_ context.Context, tell func(status, message, try string)) error {
	if admin.OnServer(e.Path) {
		tell(OK, "whoever may write the tables may run commands as the workers' users: GRANT with care", "")
		return nil
	}
	if err := admin.Insecure(e.Path); err != nil {
		return err
	}
	if info, err := os.Stat(e.Path); err == nil {
		tell(OK, fmt.Sprintf("%v; only this user and root may write it", info.Mode()), "")
	} else {
		tell(OK, "its directory is safe", "")
	}
	return nil
}

func (e *Doctor) integrity(ctx context.Context, tell func(status, message, try string)) error {
	name := "quick_check"
	if e.Full {
		name = "integrity_check"
	}
	began := time.Now()
	damage, err := admin.Integrity(ctx, e.Runner, e.Full)
	if err != nil {
		return err
	}
	if len(damage) > 0 {
		tell(Fail, name+": "+strings.Join(damage, "; "), "stop the workers, keep the file, restore a backup")
		return nil
	}
	if err := admin.Foreign(ctx, e.Runner); err != nil {
		return err
	}
	if admin.Server(e.Runner) != nil {
		tell(OK, "no foreign triggers; pages are the server's affair: pg_amcheck", "")
		return nil
	}
	tell(OK, fmt.Sprintf("%s in %s", name, humanize.Took(time.Since(began))), "")
	return nil
}

func (e *Doctor) wal(_ context.Context, tell func(status, message, try string)) error {
	_, wal := admin.Size(e.Runner)
	if admin.Server(e.Runner) != nil {
		tell(OK, "the server's own", "")
		return nil
	}
	if wal < walMost {
		tell(OK, humanize.Size(wal), "")
		return nil
	}
	var names []string
	for _, p := range admin.Readers(e.Runner) {
		names = append(names, fmt.Sprintf("pid %d (%s)", p.PID, p.Name))
	}
	message, try := humanize.Size(wal)+"; a process reads, or was reading, for long", ""
	if len(names) > 0 {
		message = humanize.Size(wal) + "; kept by " + strings.Join(names, ", ")
		try = "end that process, or its transaction"
	}
	tell(Warn, message, try)
	return nil
}

func (e *Doctor) clock(ctx context.Context, tell func(status, message, try string)) error {
	latest, err := admin.MaxTimestamp(ctx, e.Runner)
	if err != nil {
		return err
	}
	if ahead := time.Until(latest); ahead > clockSlack { // not e.Now, because workers have written since
		tell(Warn, fmt.Sprintf("%s behind the latest time in the database, %s", humanize.Age(ahead), humanize.Clock(latest, e.Now)),
			"timedatectl status")
		return nil
	}
	pauses, err := e.Runner.Pauses(ctx)
	if err != nil {
		return err
	}
	if pause, ok := pauses[runner.DeletionPause]; ok {
		tell(Warn, "workers delete no old tasks for an hour: "+pause.Reason, "timedatectl status; if it is right: runner resume --deletion")
		return nil
	}
	tell(OK, "no time in the database is ahead of it", "")
	return nil
}

func (e *Doctor) workers(ctx context.Context, tell func(status, message, try string)) error {
	s, err := view.ReadStatus(ctx, e.Runner, e.Now, nil)
	if err != nil {
		return err
	}
	seen, err := admin.LastHeartbeat(ctx, e.Runner)
	if err != nil {
		return err
	}
	now, later := 0, 0 // tasks that a worker would run now, or later
	for _, q := range s.Queues {
		now += q.Counts[jobs.Pending] + q.Counts[jobs.Running]
		later += q.Counts[jobs.Scheduled] + q.Counts[jobs.Retrying] + q.Counts[jobs.Blocked]
	}
	last := "none has ever run"
	if !seen.IsZero() {
		last = "none seen for " + humanize.Age(e.Now.Sub(seen))
	}
	switch {
	case s.Alive > 0:
		tell(OK, fmt.Sprintf("%s, %d of %d slots busy", humanize.Plural(s.Alive, "worker"), s.Busy, s.Slots), "")
	case now > 0:
		tell(Fail, fmt.Sprintf("%s; %s", last, humanize.TasksWait(now)), "systemctl status runner     or: runner work")
	case admin.Ticking(s.Schedules) > 0:
		tell(Fail, last+"; "+humanize.Does(admin.Ticking(s.Schedules), "schedule", "ticks", "tick"),
			"systemctl status runner     or: runner work")
	case later > 0:
		tell(Warn, fmt.Sprintf("%s; %s later", last, humanize.TasksWait(later)), "systemctl status runner     or: runner work")
	default:
		tell(Warn, last+"; nothing waits", "")
	}
	for _, problem := range s.Problems {
		if problem.Code == "lost_worker" {
			tell(Warn, problem.Message, problem.Try)
		}
	}
	return e.stragglers(ctx, tell)
}

// stragglers reports the processes that do not die and so prevent their tasks from starting again.
func (e *Doctor) stragglers(ctx context.Context, tell func(status, message, try string)) error {
	list, err := admin.OrphanProcesses(ctx, e.Runner)
	for _, p := range list {
		name := fmt.Sprintf("process %d (%s, state %s) of task %d", p.PID, p.Name, p.State, p.TaskID)
		switch {
		case p.Unawaited:
			tell(Warn, fmt.Sprintf("%s belongs to user %d: it has outlived its attempt, and the task does not wait for it", name, p.UID),
				fmt.Sprintf("kill %d     as root, or as that user", p.PID))
		case p.Alone:
			tell(Warn, name+" has outlived its worker", "runner work kills it before it runs the task again")
		default: // a worker has tried to kill it
			tell(Fail, name+" does not die, and holds its task back", fmt.Sprintf("cat /proc/%d/stack, as root, tells what it waits for",
				p.PID))
		}
	}
	return err
}

func (e *Doctor) queues(ctx context.Context, tell func(status, message, try string)) error {
	s, err := view.ReadStatus(ctx, e.Runner, e.Now, nil)
	if err != nil {
		return err
	}
	well := true
	for _, problem := range s.Problems {
		if slices.Contains([]string{"paused", "no_queue", "no_job"}, problem.Code) {
			well = false
			tell(Warn, problem.Message, problem.Try)
		}
	}
	if well {
		pending := 0
		for _, q := range s.Queues {
			pending += q.Counts[jobs.Pending]
		}
		tell(OK, humanize.Plural(len(s.Queues), "queue")+", "+humanize.TasksWait(pending), "")
	}
	return nil
}

func (e *Doctor) schedules(ctx context.Context, tell func(status, message, try string)) error {
	s, err := view.ReadStatus(ctx, e.Runner, e.Now, nil)
	if err != nil {
		return err
	}
	well := true
	for _, problem := range s.Problems {
		if problem.Code == "schedule_failed" || problem.Code == "schedule_skips" {
			well = false
			tell(Warn, problem.Message, problem.Try)
		}
	}
	for _, schedule := range s.Schedules {
		if late := e.Now.Sub(schedule.NextAt); s.Alive > 0 && !schedule.NextAt.IsZero() && late > lateMost {
			well = false
			tell(Warn, fmt.Sprintf("%s was due %s ago and has not fired", schedule.Name, humanize.Age(late)),
				"runner schedule show "+schedule.Name)
		}
	}
	if well {
		tell(OK, humanize.Plural(len(s.Schedules), "schedule"), "")
	}
	return nil
}

// otherDB checks the databases that runner would find without --db or without some variables. Their tasks may have no worker.
func (e *Doctor) otherDB(ctx context.Context, tell func(status, message, try string)) error {
	well := true
	for _, path := range e.Others {
		tasks, workers, err := population(ctx, path)
		if err == nil && tasks > 0 && workers == 0 {
			well = false
			tell(Warn, fmt.Sprintf("%s: %s, no worker", path, humanize.Plural(tasks, "task")), "runner --db "+path+" list -s unfinished")
		}
	}
	if well {
		tell(OK, "no tasks in another one that nobody works on", "")
	}
	return nil
}

// population returns the numbers of unfinished tasks and of workers in a database. It fails if the database cannot be read in time.
func population(ctx context.Context, path string) (tasks, workers int, err error) {
	ctx, cancel := context.WithTimeout(ctx, othersWait)
	defer cancel()
	r, err := runner.Open(ctx, path, runner.Options{ReadOnly: true, BusyTimeout: othersWait})
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	s, err := view.ReadStatus(ctx, r, time.Now(), nil)
	for _, q := range s.Queues {
		for _, n := range q.Counts {
			tasks += n
		}
	}
	return tasks, s.Alive, err
}
