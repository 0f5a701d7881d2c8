package taskspec

import (
	"time"

	"example.com/runner/jobs"
)

// defaultSpec contains the defaults of all options.
var defaultSpec = jobs.NewSpec("")

// These are the defaults of retention. The options of a worker can set other times.
const (
	DefaultKeep       = 7 * 24 * time.Hour  // time after which a worker deletes completed and cancelled tasks
	DefaultKeepFailed = 30 * 24 * time.Hour // time after which a worker deletes failed tasks
)

// These are defaults of the fields of a task. Package jobs defines them.
var (
	DefaultPriority    = defaultSpec.Priority
	DefaultOutputLimit = defaultSpec.OutputLimit
	CommandAttempts    = jobs.Command{}.With().MaxAttempts                      // default of MaxAttempts for a command
	FuncAttempts       = jobs.Define[struct{}]("").With(struct{}{}).MaxAttempts // default of MaxAttempts for a function
)

// HeadSize returns how many bytes a worker stores from the start of an output that has more bytes than limit. It also stores bytes from the
// end, and drops the middle.
func HeadSize(limit int64) int64 { return min(64<<10, limit/2) }

// defaultCatchUpWindow is the default of Schedule.CatchUpWindow.
const defaultCatchUpWindow = 24 * time.Hour

// WithDefaults returns a schedule with its empty fields set to their defaults.
func WithDefaults(s jobs.Schedule) jobs.Schedule {
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	if s.Overlap == "" {
		s.Overlap = jobs.OverlapSkip
	}
	if s.CatchUp == "" {
		s.CatchUp = jobs.CatchUpOne
	}
	if s.CatchUpWindow == 0 {
		s.CatchUpWindow = defaultCatchUpWindow
	}
	return s
}
