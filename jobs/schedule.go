package jobs

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"time"
)

// Schedule enqueues a task at each of its ticks, the moments that its cron expression names. Name, Cron, Zone and Spec say what
// and when; the other fields of the definition have useful zero values. What stands below "state" is kept by the database.
type Schedule struct {
	Name string // as a queue's
	Cron string // five fields, @hourly and its like, or "@every 90s"
	Zone string // of the IANA database, as in Europe/Berlin. Defaults to UTC
	Spec Spec   // the task; without a time and without a unique key

	Overlap       Overlap       // defaults to OverlapSkip
	CatchUp       CatchUp       // defaults to CatchUpOne
	CatchUpWindow time.Duration // with CatchUpAll: how old a missed tick may be. Defaults to 24 h
	Jitter        time.Duration // each task is due up to so much after its tick. Defaults to 0

	// State.
	PausedAt     time.Time // zero: it is not paused
	PausedBy     string
	NextAt       time.Time // the first tick that nobody has dealt with; zero: none, or it is paused
	LastAt       time.Time // when its last task was due: its tick, or the time of a run by hand
	LastTaskID   int64     // the last task may have been deleted since; its end is remembered
	LastState    State
	LastDuration time.Duration
	Skipped      int64 // ticks skipped because an earlier task was unfinished
	CreatedAt    time.Time
	UpdatedAt    time.Time // of the definition, or of the pause
}

// Overlap says what happens at a tick while an earlier task of the schedule is unfinished.
type Overlap string

// The choices of Schedule.Overlap.
const (
	OverlapSkip    Overlap = "skip"    // the tick is skipped, and counted
	OverlapAllow   Overlap = "allow"   // both run
	OverlapReplace Overlap = "replace" // the earlier task is cancelled, and the new one added once it has ended
)

// CatchUp says what happens to ticks that passed while no worker ran.
type CatchUp string

// The choices of Schedule.CatchUp.
const (
	CatchUpOne  CatchUp = "one"  // one task for all of them, for the last tick
	CatchUpSkip CatchUp = "skip" // none
	CatchUpAll  CatchUp = "all"  // one for each within CatchUpWindow, at most MaxCatchUp: the last ones
)

// Limits and defaults of schedules.
const (
	MaxCatchUp           = 100 // tasks at once
	DefaultCatchUpWindow = 24 * time.Hour
	MaxCron              = 1000 // bytes of an expression
	MinEvery             = time.Second
	OnTime               = time.Minute // a tick that is noticed within this time has not been missed
)

// WithDefaults returns the schedule with its defaults filled in.
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

// Validate returns the first thing that is wrong with the definition, but for Cron and Zone, whose rules are those of a library
// above this package. The defaults must be filled in.
func (s *Schedule) Validate() error {
	if err := ValidSchedule(s.Name); err != nil {
		return err
	}
	switch s.Overlap {
	case OverlapSkip, OverlapAllow, OverlapReplace:
	default:
		return invalid("overlap", "%q is none of skip, allow, replace", s.Overlap)
	}
	switch s.CatchUp {
	case CatchUpOne, CatchUpSkip, CatchUpAll:
	default:
		return invalid("catch_up", "%q is none of one, skip, all", s.CatchUp)
	}
	switch {
	case len(s.Cron) > MaxCron:
		return invalid("cron", "%d bytes; at most %d", len(s.Cron), MaxCron)
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

// ValidSchedule checks the name of a schedule: as a queue's.
func ValidSchedule(name string) error { return validName("schedule", name, "._-") }

// At returns the Spec of the task for a tick. It is due at the tick, or within Jitter of it: a hash of name and tick, so that a
// crowd spreads and yet any worker comes to the same time.
func (s *Schedule) At(tick time.Time) Spec {
	spec := s.Spec
	spec.Schedule, spec.Tick = s.Name, tick
	spec.RunAt = tick
	if s.Jitter > 0 {
		name := fnv.New64a()
		name.Write([]byte(s.Name))
		spec.RunAt = tick.Add(time.Duration(float64(s.Jitter) * chance(name.Sum64(), uint64(tick.UnixMilli())))).Truncate(time.Millisecond)
	}
	return spec
}

// CaughtUp returns which of the due ticks get a task at now, oldest first. newest returns the newest ticks, at most n, that are
// due and no older than from; oldest first.
func (s *Schedule) CaughtUp(newest func(from time.Time, n int) []time.Time, now time.Time) []time.Time {
	last := newest(s.NextAt, 1)
	onTime := len(last) > 0 && now.Sub(last[0]) <= OnTime
	switch {
	case s.CatchUp == CatchUpSkip && !onTime:
		return nil
	case s.CatchUp == CatchUpAll:
		from := now.Add(-s.CatchUpWindow)
		if from.Before(s.NextAt) {
			from = s.NextAt
		}
		if all := newest(from, MaxCatchUp); len(all) > 0 || !onTime {
			return all
		}
	}
	return last
}

// Differences says what of the definition differs between two schedules, as "cron is 0 3 * * *, not 0 4 * * *". The values of env
// and of input are not shown.
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
	differ("label", a.Label, b.Label)
	differ("queue", a.Queue, b.Queue)
	differ("priority", a.Priority, b.Priority)
	differ("lane", a.Lane, b.Lane)
	differ("expires_in", a.ExpiresIn, b.ExpiresIn)
	differ("timeout", a.Timeout, b.Timeout)
	differ("kill_after", a.KillAfter, b.KillAfter)
	differ("max_attempts", a.MaxAttempts, b.MaxAttempts)
	differ("max_losses", a.MaxLosses, b.MaxLosses)
	differ("backoff", a.Backoff.Strategy, b.Backoff.Strategy)
	differ("backoff_delay", a.Backoff.Delay, b.Backoff.Delay)
	differ("backoff_max", a.Backoff.Max, b.Backoff.Max)
	differ("retry_on", a.RetryOn, b.RetryOn)
	differ("output_limit", a.OutputLimit, b.OutputLimit)
	differ("path", a.Path, b.Path)
	differ("cwd", a.Cwd, b.Cwd)
	differ("env_file", a.EnvFile, b.EnvFile)
	if !maps.Equal(a.Env, b.Env) {
		list = append(list, "env")
	}
	if !bytes.Equal(a.Input, b.Input) {
		list = append(list, "input")
	}
	return list
}
