package jobs

import (
	"encoding/json"
	"time"

	"example.com/runner/jobs/command"
)

// Options are the settings of a task that have no column of their own in the
// table of tasks. The database stores the options as one JSON object, which
// leaves out default values. So a new option needs no new column. Of the SQL
// statements, only those of retention depend on an option. Schedules store
// their options in the same form.
type Options struct {
	Timeout time.Duration // longest time of one attempt; 0 for no limit
	Backoff Backoff
	KeepFor time.Duration // time after the end of the task until it is deleted; 0 for that of the workers

	Unique UniqueOptions // a Task has only For and States

	Path             string // absolute path of the program; if empty, the worker looks it up
	Cwd              string // working directory; if empty, that of the worker
	Env              map[string]string
	EnvFile          string
	command.Settings // of a command; hooks and the output limit are also of functions

	// Metadata holds texts of the application by key, such as the trace or the
	// tenant of a task. It has no effect on the task. A Filter and the searches
	// find tasks by their metadata. It has at most 32 keys, and at most 4 KiB
	// as JSON. A key is a letter or digit, followed by at most 99 letters,
	// digits or characters of "._:/-".
	Metadata map[string]string

	// Event is empty unless the task is the command of a hook. It then says
	// what the hook reports, such as "failed" or "late". The Runner sets Event.
	// The command of a hook has no hooks itself.
	Event string

	// Unknown holds options that a newer version has written, by key. The
	// database keeps these options. A worker postpones a task with such options
	// instead of running it without them.
	Unknown map[string]json.RawMessage
}
