package jobs

import (
	"encoding/json"
	"time"
)

// Options are the settings of a task that have no column of their own in the
// table of tasks. The database stores the options as one JSON object, which
// leaves out default values. So a new option needs no new column. No SQL
// statement depends on an option. Schedules store their options in the same
// form.
type Options struct {
	Timeout     time.Duration // longest time of one attempt; 0 for no limit
	KillAfter   time.Duration // time between SIGTERM and SIGKILL
	Backoff     Backoff
	RetryOn     Codes
	OutputLimit int64 // number of bytes of an attempt's output that are stored

	Unique UniqueOptions // a Task has only For and States

	LeaveChildren bool // whether processes of the command live on after the command has exited by itself

	Path    string // absolute path of the program; if empty, the worker looks it up
	Cwd     string // working directory; if empty, that of the worker
	Env     map[string]string
	EnvFile string
	Resources

	// Metadata holds texts of the application by key, such as the trace or the
	// tenant of a task. It has no effect on the task. A Filter and the searches
	// find tasks by their metadata. It has at most 32 keys, and at most 4 KiB
	// as JSON. A key is a letter or digit, followed by at most 99 letters,
	// digits or characters of "._:/-".
	Metadata map[string]string

	Hooks
	// Event is empty unless the task is the command of a hook. It then says
	// what the hook reports, such as "failed" or "late". The Runner sets Event.
	// The command of a hook has no hooks itself.
	Event string

	// Unknown holds options that a newer version has written, by key. The
	// database keeps these options. A worker postpones a task with such options
	// instead of running it without them.
	Unknown map[string]json.RawMessage
}

// Resources are the user and the resources of a command. Only workers on Linux
// can apply them. If a worker cannot apply one of them, the attempt fails with
// ReasonStart, and the command does not run.
type Resources struct {
	// name or id of the user that runs the command; if empty, the user of the
	// worker. For another user, the worker must run as root
	User   string
	Nice   int    // niceness, from -20 to 19; 0 for the niceness of the worker. A lower value than that of the worker needs root
	IONice string // priority of disk access: "idle", "best-effort" or "best-effort:0" to ":7", or as root "realtime"; empty for the default
	Memory int64  // bytes of memory and swap of all processes together, at least 1 MiB; 0 for no limit. It needs a control group
	CPU    string // CPU time as a part of one CPU, such as "50%" or "200%"; empty for no limit. It needs a control group
}
