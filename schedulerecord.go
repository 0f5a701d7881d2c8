package main

import (
	"example.com/runner/jobs"
)

// jsonSchedule is a schedule.
type jsonSchedule struct {
	Name          string       `json:"name"`
	Cron          string       `json:"cron"`
	Zone          string       `json:"zone"`
	Overlap       jobs.Overlap `json:"overlap"`
	CatchUp       jobs.CatchUp `json:"catch_up"`
	CatchUpWindow seconds      `json:"catch_up_window"`
	Jitter        seconds      `json:"jitter"`
	Paused        bool         `json:"paused"`
	NextAt        stamp        `json:"next_at"`
	LastAt        stamp        `json:"last_at"`
	LastTaskID    *int64       `json:"last_task_id"`
	LastState     *jobs.State  `json:"last_state"`
	LastDuration  *seconds     `json:"last_duration"`
	Skipped       int64        `json:"skipped"`
	Task          record       `json:"task"`
	CreatedAt     stamp        `json:"created_at"`
	UpdatedAt     stamp        `json:"updated_at"`
}

// jsonFullSchedule is a schedule as schedule show prints it.
type jsonFullSchedule struct {
	jsonSchedule
	Next []stamp `json:"next"`
}

// jsonAppliedSchedule is a schedule as schedule apply and import print it, and what became of it.
type jsonAppliedSchedule struct {
	jsonSchedule
	Applied string `json:"applied"`
}

// jsonRemoved is what schedule remove prints for a schedule.
type jsonRemoved struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
}

func scheduleRecord(s jobs.Schedule, reveal bool) jsonSchedule {
	task := scheduleTaskRecord(s.Spec)
	if reveal {
		task = task.reveal(s.Spec.Env, s.Spec.Input)
	}
	r := jsonSchedule{Name: s.Name, Cron: s.Cron, Zone: s.Zone, Overlap: s.Overlap, CatchUp: s.CatchUp,
		CatchUpWindow: seconds(s.CatchUpWindow),
		Jitter:        seconds(s.Jitter), Paused: !s.PausedAt.IsZero(), NextAt: stamp(s.NextAt), LastAt: stamp(s.LastAt),
		LastTaskID: known(s.LastTaskID),
		LastState:  known(s.LastState), Skipped: s.Skipped, Task: task, CreatedAt: stamp(s.CreatedAt), UpdatedAt: stamp(s.UpdatedAt)}
	if s.LastState.Finished() {
		r.LastDuration = new(seconds(s.LastDuration))
	}
	return r
}

// scheduleTaskRecord is the record of the task that a schedule enqueues.
func scheduleTaskRecord(s jobs.Spec) record {
	r := record{{"job", s.Job}, {"args", rawJSON(s.Args)}}
	for i := range jobs.OptionList() {
		if o := &jobs.OptionList()[i]; !o.OneTask && o.Key != "input" {
			r = append(r, optionMember(o, &s))
		}
	}
	return append(r, member{"input_bytes", len(s.Input)})
}
