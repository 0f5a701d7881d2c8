package record

import (
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Schedule is the record of a schedule.
type Schedule struct {
	Name          string       `json:"name"`
	Cron          string       `json:"cron"`
	Zone          string       `json:"zone"`
	Overlap       jobs.Overlap `json:"overlap"`
	CatchUp       jobs.CatchUp `json:"catch_up"`
	CatchUpWindow Seconds      `json:"catch_up_window"`
	Jitter        Seconds      `json:"jitter"`
	AlertAfter    *Seconds     `json:"alert_after"`
	OnTick        bool         `json:"on_tick"`
	Paused        bool         `json:"paused"`
	NextAt        Stamp        `json:"next_at"`
	LastAt        Stamp        `json:"last_at"`
	LastTaskID    *int64       `json:"last_task_id"`
	LastState     *jobs.State  `json:"last_state"`
	LastDuration  *Seconds     `json:"last_duration"`
	LastSuccess   Stamp        `json:"last_success"`
	Skipped       int64        `json:"skipped"`
	Task          Record       `json:"task"`
	CreatedAt     Stamp        `json:"created_at"`
	UpdatedAt     Stamp        `json:"updated_at"`
}

// FullSchedule is the JSON record of a schedule that "schedule show" prints.
type FullSchedule struct {
	Schedule
	Next []Stamp `json:"next"`
}

// AppliedSchedule is the JSON record of a schedule that "schedule apply" and "schedule import" print. It says what they did to the
// schedule.
type AppliedSchedule struct {
	Schedule
	Applied string `json:"applied"`
}

// Removed is the record that "schedule remove" prints for a schedule.
type Removed struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
}

func NewSchedule(s jobs.Schedule, reveal bool) Schedule {
	task := NewScheduleTask(s.Spec)
	if reveal {
		task = task.Reveal(s.Spec.Env, s.Spec.Input)
	}
	r := Schedule{Name: s.Name, Cron: s.Cron, Zone: s.Zone, Overlap: s.Overlap, CatchUp: s.CatchUp, CatchUpWindow: Seconds(s.CatchUpWindow),
		Jitter: Seconds(s.Jitter), AlertAfter: Known(Seconds(s.AlertAfter)), OnTick: s.OnTick, LastSuccess: Stamp(s.LastSuccess),
		Paused: !s.PausedAt.IsZero(), NextAt: Stamp(s.NextAt), LastAt: Stamp(s.LastAt),
		LastTaskID: Known(s.LastTaskID),
		LastState:  Known(s.LastState), Skipped: s.Skipped, Task: task, CreatedAt: Stamp(s.CreatedAt), UpdatedAt: Stamp(s.UpdatedAt)}
	if s.LastState.Finished() {
		r.LastDuration = new(Seconds(s.LastDuration))
	}
	return r
}

// NewScheduleTask returns the record of the task that a schedule enqueues.
func NewScheduleTask(s jobs.Spec) Record {
	r := Record{{"job", s.Job}, {"args", Raw(s.Args)}}
	for i := range taskspec.OptionList() {
		if o := &taskspec.OptionList()[i]; !o.OneTask && o.Key != "input" {
			r = append(r, optionMember(o, &s))
		}
	}
	return append(r, Member{"input_bytes", len(s.Input)})
}
