package jobs

import (
	"cmp"
	"fmt"
	"reflect"
	"time"
)

// Schedule enqueues a task at each tick. The ticks are the times that match its cron expression. Name, Cron and Spec are required,
// and the other fields of the definition have defaults. The database keeps the fields below "State".
type Schedule struct {
	Name string // the same characters as a queue's name
	Cron string // five fields, a word such as @hourly, or "@every 90s"
	Zone string // time zone of the IANA database, such as Europe/Berlin; default UTC
	Spec Spec   // the task, without a due time and without a unique key

	Overlap       Overlap       // default OverlapSkip
	CatchUp       CatchUp       // default CatchUpOne
	CatchUpWindow time.Duration // with CatchUpAll: the greatest age of a missed tick that still gets a task; default 24 h
	Jitter        time.Duration // greatest delay of a task after its tick; default 0

	// State.
	PausedAt     time.Time // zero if the schedule is not paused
	PausedBy     string
	NextAt       time.Time // the next tick; zero if there is none or the schedule is paused
	LastAt       time.Time // tick of the last task, or the time at which a person started it
	LastTaskID   int64     // id of the last task, which may have been deleted since
	LastState    State
	LastDuration time.Duration
	Skipped      int64 // ticks skipped because an earlier task was unfinished
	CreatedAt    time.Time
	UpdatedAt    time.Time // last change of the definition or of the pause
}

// Overlap is what happens at a tick while an earlier task of the schedule is unfinished.
type Overlap string

// The values of Schedule.Overlap.
const (
	OverlapSkip    Overlap = "skip"    // skip the tick, and count it in Skipped
	OverlapAllow   Overlap = "allow"   // run both tasks
	OverlapReplace Overlap = "replace" // cancel the earlier task, and add the new task when it has ended
)

// CatchUp is what happens with ticks that passed while no worker ran.
type CatchUp string

// The values of Schedule.CatchUp.
const (
	CatchUpOne  CatchUp = "one"  // enqueue one task, for the last tick
	CatchUpSkip CatchUp = "skip" // enqueue no task
	CatchUpAll  CatchUp = "all"  // enqueue a task for each tick within CatchUpWindow, for the last maxCatchUp of them at most
)

// Limits and defaults of schedules.
const (
	DefaultCatchUpWindow = 24 * time.Hour
	maxCron              = 1000 // bytes of an expression
	MinEvery             = time.Second
)

// WithDefaults returns the schedule with the defaults of empty fields.
func (s Schedule) WithDefaults() Schedule {
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	if s.Overlap == "" {
		s.Overlap = OverlapSkip
	}
	if s.CatchUp == "" {
		s.CatchUp = CatchUpOne
	}
	if s.CatchUpWindow == 0 {
		s.CatchUpWindow = DefaultCatchUpWindow
	}
	return s
}

// Validate returns the first error in the definition. It does not check Cron and Zone, since that needs a library which this package does
// not import. Call WithDefaults first.
func (s *Schedule) Validate() error {
	if err := ValidSchedule(s.Name); err != nil {
		return err
	}
	switch s.Overlap {
	case OverlapSkip, OverlapAllow, OverlapReplace:
	default:
		return invalid("overlap", "invalid value %q; use skip, allow or replace", s.Overlap)
	}
	switch s.CatchUp {
	case CatchUpOne, CatchUpSkip, CatchUpAll:
	default:
		return invalid("catch_up", "invalid value %q; use one, skip or all", s.CatchUp)
	}
	switch {
	case len(s.Cron) > maxCron:
		return invalid("cron", "%d bytes; at most %d", len(s.Cron), maxCron)
	case s.Overlap == OverlapReplace && s.CatchUp == CatchUpAll:
		return invalid("catch_up", "all does not go with overlap replace: each task would replace the one before it")
	case s.CatchUpWindow <= 0 || s.CatchUpWindow > MaxDelay:
		return invalid("catch_up_window", "%v is out of range (1 ms to 10 years)", s.CatchUpWindow)
	case s.Jitter < 0 || s.Jitter > MaxDelay:
		return invalid("jitter", "%v is out of range (0 to 10 years)", s.Jitter)
	case s.Spec.Err != nil:
		return s.Spec.Err
	case !s.Spec.RunAt.IsZero() || s.Spec.In != 0:
		return invalid("run_at", "the schedule says when its tasks are due")
	case !s.Spec.ExpiresAt.IsZero():
		return invalid("expires_at", "a schedule has many tasks; give expires_in")
	case s.Spec.UniqueKey != "":
		return invalid("unique_key", "overlap says what happens while an earlier task is unfinished")
	}
	return s.Spec.Validate()
}

// ValidSchedule checks the name of a schedule. The rules are those of a queue's name.
func ValidSchedule(name string) error { return validName("schedule", name, "._-") }

// Differences lists the differences between the definitions of two schedules, such as "cron is 0 3 * * *, not 0 4 * * *". It does not
// show the values of env and input.
func (s *Schedule) Differences(to *Schedule) []string {
	var list []string
	differ := func(field string, was, is any) {
		if a, b := fmt.Sprint(was), fmt.Sprint(is); a != b {
			list = append(list, fmt.Sprintf("%s is %s, not %s", field, cmp.Or(a, "none"), cmp.Or(b, "none")))
		}
	}
	differ("cron", s.Cron, to.Cron)
	differ("zone", s.Zone, to.Zone)
	differ("overlap", s.Overlap, to.Overlap)
	differ("catch_up", s.CatchUp, to.CatchUp)
	differ("catch_up_window", s.CatchUpWindow, to.CatchUpWindow)
	differ("jitter", s.Jitter, to.Jitter)
	a, b := &s.Spec, &to.Spec
	differ("job", a.Job, b.Job)
	differ("args", string(a.Args), string(b.Args))
	for i := range taskOptions {
		option := &taskOptions[i]
		was, is := option.Field(a), option.Field(b)
		switch was.(type) {
		case *map[string]string, *[]byte:
			if !sameValue(was, is) {
				list = append(list, option.Key)
			}
		default:
			if !option.OneTask {
				differ(option.Key, reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem())
			}
		}
	}
	return list
}
