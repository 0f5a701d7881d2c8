package jobs

import (
	"time"
)

// Schedule enqueues a task at each tick. The ticks are the times that match its
// cron expression. Name, Cron and Spec are required, and the other fields of
// the definition have defaults. The database sets the fields from PausedAt on,
// which describe the state of the schedule.
type Schedule struct {
	Name string // name with the same characters as a queue's name
	Cron string // five fields, a word such as @hourly, or "@every 90s"
	Zone string // time zone of the IANA database, such as Europe/Berlin; default UTC
	Spec Spec   // task to enqueue, without a due time and without a unique key

	Overlap       Overlap       // default OverlapSkip
	CatchUp       CatchUp       // default CatchUpOne
	CatchUpWindow time.Duration // with CatchUpAll: the greatest age of a missed tick that still gets a task; default 24 h
	Jitter        time.Duration // greatest delay of a task after its tick; default 0
	// AlertAfter is the longest time that may pass without a completed task of
	// the schedule. If more time passes, the schedule has a problem, and a
	// worker runs the command OnFailure of the task. With 0 there are no
	// alerts.
	AlertAfter time.Duration
	// OnTick is whether a function of a program makes the Spec of each tick.
	// Runner.OnTick of package runner sets it. Workers without the function
	// leave the ticks to workers that have it.
	OnTick bool

	// State.
	PausedAt     time.Time // time of the pause; zero if the schedule is not paused
	PausedBy     string
	NextAt       time.Time // the next tick, in UTC like all stored times; zero if there is none or the schedule is paused
	LastAt       time.Time // tick of the last task, or the time at which a person started that task
	LastTaskID   int64     // id of the last task, which may have been deleted since
	LastState    State
	LastDuration time.Duration
	LastSuccess  time.Time // end of the last task that completed; zero if no task has, or if AlertAfter is 0
	AlertedAt    time.Time // time of the last alert
	Skipped      int64     // ticks skipped because an earlier task was unfinished
	CreatedAt    time.Time
	UpdatedAt    time.Time // time of the last change of the definition, or of the last pause or resume
}

// Overlap is the rule for a tick that comes while an earlier task of the
// schedule is unfinished.
type Overlap string

// The values of Schedule.Overlap.
const (
	OverlapSkip    Overlap = "skip"    // skip the tick, and count it in Skipped
	OverlapAllow   Overlap = "allow"   // run both tasks
	OverlapReplace Overlap = "replace" // cancel the earlier task, and add the new task when the earlier one has ended
)

// CatchUp is the rule for missed ticks, and for several ticks that are due at
// once. A tick is missed if it is more than a minute old when a worker sees it.
// With CatchUpOne and CatchUpSkip, all ticks that are due at once get at most
// one task, even if the ticks are seconds apart. If each tick needs its own
// task, such as a reading each second, use CatchUpAll, and set CatchUpWindow to
// the age of the oldest tick that is still of use.
type CatchUp string

// The values of Schedule.CatchUp.
const (
	CatchUpOne  CatchUp = "one"  // enqueue one task, for the last due tick
	CatchUpSkip CatchUp = "skip" // enqueue one task, for the last due tick; no task if that tick is more than a minute old
	CatchUpAll  CatchUp = "all"  // enqueue a task for each tick within CatchUpWindow, but at most for the last 100 ticks
)
