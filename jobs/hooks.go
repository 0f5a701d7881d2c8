package jobs

// Hooks are commands that run because a task has ended. Each command is a line
// for the shell of the worker's system: /bin/sh -c, or cmd.exe on Windows. An
// empty line stands for no command.
//
// A hook is a task of its own. The transaction that ends the original task
// enqueues the hook, so a crash cannot lose it. The hook goes to the queue of
// the original task and starts before the other tasks there. It runs for at
// most a minute, and up to 10 times until it succeeds. Variables named
// RUNNER_EVENT… describe the original task, and the standard input has the last
// lines of its output. The end of a hook does not run other hooks.
type Hooks struct {
	OnFailure string // command that runs when the task has failed and is not retried
	OnSuccess string // command that runs when the task has completed
	// OnRecovery is the command that runs when the task has completed and its
	// predecessor had failed. The predecessor is the previous task of the same
	// schedule, or the previous task with the same unique key.
	OnRecovery string
	OnOutput   string // command that runs when the task has completed or failed, and its last attempt has printed something
}

// OnEnd sets the hooks of the task.
func OnEnd(h Hooks) Option { return func(s *Spec) { s.Hooks = h } }
