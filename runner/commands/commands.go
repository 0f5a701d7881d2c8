// Package commands lets a worker of package runner run commands. A program that
// runs functions only doesn't need it, and enqueues commands without it
// (jobs.Command).
//
//	func main() {
//		if commands.Guardian() {
//			return
//		}
//		ctx := context.Background()
//		r, err := runner.Open(ctx, "runner.db", runner.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer r.Close()
//		r.Register(commands.Handler(commands.Options{}))
//		log.Println(r.Work(ctx, runner.WorkOptions{}))
//	}
package commands

import (
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/internal/engine"
	"example.com/runner/runner/internal/exec"
)

// Options are the options of Handler. The zero Options has all defaults.
type Options struct {
	// Timeout limits attempts of commands that have no timeout of their own.
	// Defaults to no limit, which is also the meaning of a negative value.
	Timeout time.Duration
	// LeaveChildren sets command.Settings.LeaveChildren for all commands: if a
	// command exits by itself, the processes that it leaves behind live on.
	// Defaults to false.
	LeaveChildren bool
	// OutputLimit is how many bytes of an attempt's output are stored for
	// commands with the default limit. A negative value means that no output is
	// stored. Defaults to 1 MiB.
	OutputLimit int64
	// Hooks are the commands that run when a task without its own hooks ends in
	// Work. Defaults to none.
	Hooks command.Hooks
	// InsecurePerms lets Work run commands even if a user other than the one
	// who runs Work may write the database. Whoever can write the database can
	// run commands as the user of Work. Defaults to false.
	InsecurePerms bool
	// GuardianPath is the path of an installed program whose main begins with a
	// call of Guardian, such as runner itself. It must have the same version as
	// this package. Work starts this program, instead of its own, as the
	// guardian of commands. Defaults to this program, which must call Guardian.
	GuardianPath string
	// OwnProcess declares that this process does nothing but Work. Work then
	// changes the process: it adopts processes that outlive their parents, and
	// commands cannot read its memory. Linux only. Defaults to false.
	OwnProcess bool
	// Tee receives the output of commands while they run, and nil at the end of
	// a stream. Several goroutines call Tee. It must not keep the data after it
	// returns. Defaults to no function.
	Tee func(task jobs.Task, stream string, data []byte)
	// PagesURL is the URL of the pages of package web, such as
	// "https://runner.example.com". With a PagesURL, the variable
	// RUNNER_EVENT_URL of a hook has the URL of a page: that of the task or
	// schedule that the hook reports. Defaults to no URL.
	PagesURL string
}

// Handler returns the handler of the job "command". Options apply to all
// commands of the worker.
func Handler(options Options) jobs.Handler {
	h := jobs.Handler{Job: command.Job, MaxAttempts: taskspec.CommandAttempts, Run: engine.RunCommand}
	*usercode.Commands(&h) = engine.NewCommands(engine.CommandOptions(options))
	return h
}

// Guardian must be the first call in the main function of a program that runs
// commands:
//
//	if commands.Guardian() {
//		return
//	}
//
// In the program itself, Guardian returns false immediately. It also records
// that it was called, because Work checks this. A guardian is another process
// of the worker's program, and a worker has one guardian for each command that
// runs at the same time. The guardian starts the command. It kills all
// processes of the command when the command ends, and also when the worker is
// killed or stopped for too long. In the guardian process, Guardian returns
// true when the guardian has nothing left to do. Package initialisation runs in
// the guardian, too. See also Options.GuardianPath.
func Guardian() bool { return exec.Guardian(db.RunnerVersion) }
