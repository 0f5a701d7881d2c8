package main

import (
	"encoding/json"

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
	Task          any          `json:"task"` // jsonScheduleTask, or with --reveal jsonTaskRevealed
	CreatedAt     stamp        `json:"created_at"`
	UpdatedAt     stamp        `json:"updated_at"`
}

// jsonScheduleTask is what a schedule enqueues.
type jsonScheduleTask struct {
	Job         string          `json:"job"`
	Args        json.RawMessage `json:"args"`
	Label       *string         `json:"label"`
	Queue       string          `json:"queue"`
	Priority    int             `json:"priority"`
	Lane        *string         `json:"lane"`
	ExpiresIn   *seconds        `json:"expires_in"`
	Timeout     *seconds        `json:"timeout"`
	KillAfter   seconds         `json:"kill_after"`
	MaxAttempts *int            `json:"max_attempts"`
	MaxLosses   int             `json:"max_losses"`
	jsonOptions
}

// jsonTaskRevealed is jsonScheduleTask with the values of env, and what the command reads on stdin.
type jsonTaskRevealed struct {
	jsonScheduleTask
	Input *string `json:"input"`
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
	t := s.Spec
	task := jsonScheduleTask{Job: t.Job, Args: rawJSON(t.Args), Label: known(t.Label), Queue: t.Queue, Priority: t.Priority, Lane: known(t.Lane),
		ExpiresIn: known(seconds(t.ExpiresIn)), Timeout: known(seconds(t.Timeout)), KillAfter: seconds(t.KillAfter),
		MaxAttempts: known(t.MaxAttempts), MaxLosses: t.MaxLosses, jsonOptions: optionsRecord(t.Options, int64(len(t.Input)))}
	r := jsonSchedule{Name: s.Name, Cron: s.Cron, Zone: s.Zone, Overlap: s.Overlap, CatchUp: s.CatchUp, CatchUpWindow: seconds(s.CatchUpWindow),
		Jitter: seconds(s.Jitter), Paused: !s.PausedAt.IsZero(), NextAt: stamp(s.NextAt), LastAt: stamp(s.LastAt), LastTaskID: known(s.LastTaskID),
		LastState: known(s.LastState), Skipped: s.Skipped, Task: task, CreatedAt: stamp(s.CreatedAt), UpdatedAt: stamp(s.UpdatedAt)}
	if s.LastState.Finished() {
		r.LastDuration = new(seconds(s.LastDuration))
	}
	if reveal {
		task.Env = revealed(t.Env)
		r.Task = jsonTaskRevealed{task, encoded(t.Input)}
	}
	return r
}
