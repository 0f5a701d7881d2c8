package selftest

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Report is what a run found.
type Report struct {
	Seed   uint64  `json:"seed"`
	For    float64 `json:"seconds"`
	Dir    string  `json:"dir"` // of the files that were kept; empty: none were
	System string  `json:"system"`
	CPUs   int     `json:"cpus"`

	Tasks       int            `json:"tasks"`
	Enqueued    int            `json:"enqueued"` // acknowledged
	Claims      int            `json:"claims"`
	Losses      int            `json:"losses"`
	KillsStops  int            `json:"kills_and_stops"`
	CommitKills int            `json:"commit_kills"` // of processes while they committed
	Faults      map[string]int `json:"acts"`
	Server      bool           `json:"server"` // the database was on one

	Violations []Violation `json:"violations"`
	Figures    Figures     `json:"figures"`
}

// Figures are what was measured. Times are seconds.
type Figures struct {
	RecoveryP99 float64 `json:"recovery_p99"` // from SIGKILL of a worker until all its tasks were free again, without locks and freezes of the harness
	RecoveryMax float64 `json:"recovery_max"`
	Recoveries  int     `json:"recoveries"`
	LeaseMax    float64 `json:"lease_recovery_max"` // from the last heartbeat of a stopped worker
	Leases      int     `json:"lease_recoveries"`
	Orphans     int     `json:"orphans"`   // alive 1 s after the SIGKILL of their worker
	Survivors   int     `json:"survivors"` // alive 1 s after the end of their attempt
	Leftovers   int     `json:"leftovers"` // processes that commands have left behind
	Unreadable  int     `json:"unreadable_leftovers"`
	Foreign     int     `json:"foreign_leftovers"`
	OwnKills    int     `json:"own_kills"`     // attempts that ended by a signal, which only runner sends
	DelayP99    float64 `json:"end_delay_p99"` // from the end of a command's work until that is recorded, while others have leftovers
	DelayMax    float64 `json:"end_delay_max"`
	Delays      int     `json:"end_delays"`
	Overlaps    int     `json:"overlaps"`
	Functions   int     `json:"function_overlaps"` // of functions that outlived their claims, as a worker stood still or did not wait for them: see the limits
	Lost        int     `json:"lost"`              // enqueues that were acknowledged
	Busy        int     `json:"busy"`              // errors for want of the lock that anybody was told of
	OpenMax     float64 `json:"open_max"`          // of a database whose last process was killed while it committed
	OpenP50     float64 `json:"open_p50"`
	Resumed     int     `json:"resumed"`    // times that the server was killed and work went on
	ResumeMax   float64 `json:"resume_max"` // from when the server answers again to the next claim, the harness's own locks and partitions apart
	Drain       float64 `json:"drain"`      // from the end of the nemesis to the end of the last task
}

// Violation is a broken promise.
type Violation struct {
	Invariant string `json:"invariant"` // I1 to I14 of docs/reliability.md
	Task      int64  `json:"task"`      // 0: of none
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
		Server: o.Server != nil, Faults: map[string]int{}, Violations: []Violation{}}
}

// Broken lists the invariants that were violated.
func (r *Report) Broken() []string {
	var list []string
	for _, v := range r.Violations {
		list = append(list, v.Invariant)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 1e4 }
