package db

import (
	"encoding/json"
	"fmt"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// scheduleTask is the stored form of the task of a schedule.
type scheduleTask struct {
	Job         string          `json:"job"`
	Args        json.RawMessage `json:"args,omitempty"`
	Label       string          `json:"label,omitempty"`
	Queue       string          `json:"queue"`
	Priority    int             `json:"priority"`
	Lane        string          `json:"lane,omitempty"`
	ExpiresIn   int64           `json:"expires_in,omitempty"` // duration in ms
	MaxAttempts int             `json:"max_attempts,omitempty"`
	MaxLosses   int             `json:"max_losses"`
	Options     json.RawMessage `json:"options,omitempty"` // same form as in the table tasks
	OnTick      bool            `json:"on_tick,omitempty"` // whether a function of the program makes each task; see jobs.Schedule
}

func encodeTask(s *jobs.Spec, onTick bool) (string, error) {
	options, err := taskspec.EncodeOptions(&s.Options)
	if err != nil {
		return "", err
	}
	text, err := usercode.Marshal(scheduleTask{Job: s.Job, Args: s.Args, Label: s.Label, Queue: s.Queue, Priority: s.Priority, Lane: s.Lane,
		ExpiresIn: millis(s.ExpiresIn), MaxAttempts: s.MaxAttempts, MaxLosses: s.MaxLosses, Options: options, OnTick: onTick})
	return string(text), err
}

func decodeTask(text string, input []byte) (spec jobs.Spec, onTick bool, err error) {
	var t scheduleTask
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return spec, false, err
	}
	if len(input) == 0 {
		input = nil
	}
	return jobs.Spec{Job: t.Job, Args: t.Args, Label: t.Label, Queue: t.Queue, Priority: t.Priority, Lane: t.Lane,
		ExpiresIn: number(t.ExpiresIn).duration(), MaxAttempts: t.MaxAttempts, MaxLosses: t.MaxLosses,
		Options: taskspec.DecodeOptions(t.Options), Input: input}, t.OnTick, nil
}

type scheduleRow struct {
	jobs.Schedule
	Boot          text   `db:"boot"`
	CatchUp       string `db:"catch_up"`
	CatchUpWindow number `db:"catch_up_window"`
	Jitter        number `db:"jitter"`
	AlertAfter    number `db:"alert_after"`
	AlertedAt     number `db:"alerted_at"`
	KeptSuccess   number `db:"kept_success"`
	LastSuccess   number `db:"last_success"`
	KeptState     text   `db:"kept_state"`
	KeptDuration  number `db:"kept_duration"`
	LastStarted   number `db:"last_started_at"`
	LastFinished  number `db:"last_finished_at"`
	LastOutcome   text   `db:"last_outcome"`
	PausedAt      number `db:"paused_at"`
	PausedBy      text   `db:"paused_by"`
	NextAt        number `db:"next_at"`
	LastAt        number `db:"last_at"`
	LastTaskID    number `db:"last_task_id"`
	LastState     text   `db:"last_state"`
	Task          string `db:"task"`
	Input         []byte `db:"input"`
	CreatedAt     number `db:"created_at"`
	UpdatedAt     number `db:"updated_at"`
}

func (r *scheduleRow) schedule() (jobs.Schedule, error) {
	spec, onTick, err := decodeTask(r.Task, r.Input)
	lasted := r.KeptDuration.duration()
	if last := r.LastOutcome.outcome(r.LastStarted, r.LastFinished); last.Duration != nil {
		lasted = last.duration()
	}
	if err != nil {
		return jobs.Schedule{}, fmt.Errorf("schedule %s: %w", r.Name, err)
	}

	s := r.Schedule
	s.Spec, s.OnTick, s.CatchUp = spec, onTick, jobs.CatchUp(r.CatchUp)
	s.CatchUpWindow, s.Jitter = r.CatchUpWindow.duration(), r.Jitter.duration()
	s.PausedAt, s.PausedBy, s.NextAt, s.CreatedAt, s.UpdatedAt = r.PausedAt.time(), string(r.PausedBy), r.NextAt.time(), r.CreatedAt.time(),
		r.UpdatedAt.time()
	s.LastAt, s.LastTaskID, s.LastState, s.LastDuration = r.LastAt.time(), int64(r.LastTaskID), jobs.State(r.LastState), lasted
	s.AlertAfter, s.AlertedAt, s.LastSuccess = r.AlertAfter.duration(), r.AlertedAt.time(), r.LastSuccess.time()
	return s, nil
}

func schedulesOf(rows []scheduleRow) ([]jobs.Schedule, error) {
	list := make([]jobs.Schedule, len(rows))
	for i := range rows {
		var err error
		if list[i], err = rows[i].schedule(); err != nil {
			return nil, err
		}
	}

	return list, nil
}
