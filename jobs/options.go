package jobs

import (
	"encoding/json"
	"time"
)

// Options are the settings with which a worker executes the attempts of a task. The database stores them as one JSON object without
// the defaults, so that a new option needs no new column. No SQL statement depends on them. Schedules store them in the same form.
type Options struct {
	Timeout     time.Duration // longest time of one attempt; 0 for no limit
	KillAfter   time.Duration // time between SIGTERM and SIGKILL
	Backoff     Backoff
	RetryOn     Codes
	OutputLimit int64 // number of bytes of an attempt's output that are stored

	LeaveChildren bool // whether processes that the command leaves behind when it exits by itself live on

	Path    string // absolute path of the program; if empty, the worker looks it up
	Cwd     string // working directory; if empty, that of the worker
	Env     map[string]string
	EnvFile string

	Hooks
	// Event is the event that the task reports if it is the command of a hook; empty for any other task. The Runner sets it. Such a task
	// has no hooks.
	Event string

	// Unknown holds options that a newer version has written, by key. The database keeps these options. A worker postpones a task with such
	// options instead of running it without them.
	Unknown map[string]json.RawMessage
}
