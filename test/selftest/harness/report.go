package harness

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Report is the result of a run.
type Report struct {
	Seed   uint64  `json:"seed"`
	For    float64 `json:"seconds"`
	Dir    string  `json:"dir"` // directory of the run; empty if Run has removed it because there is no violation
	System string  `json:"system"`
	CPUs   int     `json:"cpus"`

	Tasks       int            `json:"tasks"`
	Enqueued    int            `json:"enqueued"` // number of enqueues that runner confirmed
	Claims      int            `json:"claims"`
	Losses      int            `json:"losses"`
	KillsStops  int            `json:"kills_and_stops"`
	CommitKills int            `json:"commit_kills"` // number of processes that were killed during a commit
	Faults      map[string]int `json:"acts"`
	Server      bool           `json:"server"` // whether the database was on a server

	Violations []Violation `json:"violations"`
	Figures    Figures     `json:"figures"`
}

// Figures are the measurements of a run. Durations are in seconds.
type Figures struct {
	// 99th percentile of the time from the SIGKILL of a worker until another
	// worker released its tasks, minus the periods in which the harness blocked
	// all writes
	RecoveryP99 float64 `json:"recovery_p99"`
	RecoveryMax float64 `json:"recovery_max"`
	Recoveries  int     `json:"recoveries"`
	// longest time from the last heartbeat of a hung worker until another
	// worker took its task away, minus the periods in which the harness blocked
	// all writes
	LeaseMax   float64 `json:"lease_recovery_max"`
	Leases     int     `json:"lease_recoveries"`
	Orphans    int     `json:"orphans"`   // number of processes that lived more than 1 s longer than their killed worker
	Survivors  int     `json:"survivors"` // number of processes that lived more than 1 s longer than their attempt
	Leftovers  int     `json:"leftovers"` // number of processes that commands left behind
	Unreadable int     `json:"unreadable_leftovers"`
	Foreign    int     `json:"foreign_leftovers"`
	OwnKills   int     `json:"own_kills"` // number of attempts whose command was killed, but not by runner (reason "signal"); must be 0
	// 99th percentile of the time from the end of a command until runner
	// recorded it, while leftovers of other tasks were alive
	DelayP99  float64 `json:"end_delay_p99"`
	DelayMax  float64 `json:"end_delay_max"`
	Delays    int     `json:"end_delays"`
	Overlaps  int     `json:"overlaps"`
	Functions int     `json:"function_overlaps"` // number of functions that outlived their claims; docs/reliability.md allows this
	Lost      int     `json:"lost"`              // number of confirmed enqueues whose task doesn't exist
	Busy      int     `json:"busy"`              // number of errors that report a busy database
	OpenMax   float64 `json:"open_max"`          // longest time to open a database whose last process was killed during a commit
	OpenP50   float64 `json:"open_p50"`
	Resumed   int     `json:"resumed"` // number of kills of the server after which workers claimed tasks again
	// longest time from a restart of the server to the next claim, minus the
	// periods in which the harness blocked all writes
	ResumeMax float64 `json:"resume_max"`
	Drain     float64 `json:"drain"` // time from the last fault until all tasks had ended
}

// Violation is a violated invariant.
type Violation struct {
	Invariant string `json:"invariant"` // name in docs/reliability.md: I1 to I14
	Task      int64  `json:"task"`      // id of the task; 0 if the violation isn't about one task
	Text      string `json:"text"`
}

func (v Violation) String() string {
	if v.Task == 0 {
		return v.Invariant + ": " + v.Text
	}
	return fmt.Sprintf("%s: task %d: %s", v.Invariant, v.Task, v.Text)
}

func newReport(o Options, dir string) *Report {
	return &Report{Seed: o.Seed, For: o.For.Seconds(), Dir: dir, System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Server: o.Postgres, Faults: map[string]int{}, Violations: []Violation{}}
}

// Broken lists the names of the violated invariants.
func (r *Report) Broken() []string {
	var list []string
	for _, v := range r.Violations {
		list = append(list, v.Invariant)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 1e4 }
