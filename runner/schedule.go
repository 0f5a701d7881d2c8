package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/cron"
)

// Schedule adds a schedule, or changes the one of that name, keeping its history and its pause. The same definition again changes
// nothing, so a program may do it at each start. Errors of the definition are of kind jobs.ErrInvalid.
func (r *Runner) Schedule(ctx context.Context, s jobs.Schedule) error {
	_, err := r.ApplySchedules(ctx, []jobs.Schedule{s}, ApplyOptions{})
	return err
}

// ApplyOptions say how ApplySchedules treats schedules that are there already.
type ApplyOptions struct {
	Keep   bool // refuse a schedule that is there with another definition: jobs.ErrConflict. Defaults to changing it
	Prune  bool // remove those that are not in the list
	DryRun bool // change nothing
}

// The words of Applied.Did.
const (
	ScheduleAdded     = "added"
	ScheduleChanged   = "changed"
	ScheduleUnchanged = "unchanged"
	ScheduleRemoved   = "removed"
)

// Applied is what became of a schedule.
type Applied struct {
	Schedule jobs.Schedule // as it is now; removed: as it was
	Did      string
}

// ApplySchedules makes the schedules what the list says, in one transaction, all or none: each is added, changed or left alone. The
// answers are in the order of the list, then those that were removed. A new schedule with a PausedAt comes paused. The error of a definition that cannot be is a *SpecError.
func (r *Runner) ApplySchedules(ctx context.Context, list []jobs.Schedule, o ApplyOptions) ([]Applied, error) {
	at := now()
	list = slices.Clone(list)
	crons := make([]cron.Expression, len(list))
	for i := range list {
		list[i] = list[i].WithDefaults()
		err := list[i].Validate()
		if err == nil {
			crons[i], err = cron.Parse(list[i].Cron, list[i].Zone)
		}
		if err == nil && slices.ContainsFunc(list[:i], func(s jobs.Schedule) bool { return s.Name == list[i].Name }) {
			err = &jobs.FieldError{Field: "name", Msg: fmt.Sprintf("%q is there twice", list[i].Name)}
		}
		if err != nil {
			return nil, &SpecError{Index: i, Err: err}
		}
	}
	var done []Applied
	err := r.store.ChangeSchedules(ctx, at, func(have []jobs.Schedule) (put []jobs.Schedule, remove []string, err error) {
		done = nil
		for i, s := range list {
			did := ScheduleAdded
			s.NextAt = crons[i].Next(at)
			s.CreatedAt, s.UpdatedAt = at, at
			if !s.PausedAt.IsZero() {
				s.PausedAt, s.PausedBy, s.NextAt = at, r.user(), time.Time{}
			}
			if n := slices.IndexFunc(have, func(old jobs.Schedule) bool { return old.Name == s.Name }); n >= 0 {
				old := have[n]
				differences := old.Differences(&s)
				did = ScheduleChanged
				if len(differences) == 0 {
					done = append(done, Applied{old, ScheduleUnchanged})
					continue
				}
				if o.Keep {
					return nil, nil, &SpecError{Index: i, Err: differs(s.Name, differences)}
				}
				s.NextAt = crons[i].Next(at)
				s = redefined(old, s)
			}
			put, done = append(put, s), append(done, Applied{s, did})
		}
		for _, old := range have {
			if o.Prune && !slices.ContainsFunc(list, func(s jobs.Schedule) bool { return s.Name == old.Name }) {
				remove, done = append(remove, old.Name), append(done, Applied{old, ScheduleRemoved})
			}
		}
		if o.DryRun {
			return nil, nil, nil
		}
		return put, remove, nil
	})
	if err == nil {
		r.notifier.Notify()
	}
	return done, err
}

// redefined is a schedule with a new definition and its old history. Its next tick stays if its times do.
func redefined(old, s jobs.Schedule) jobs.Schedule {
	next := s.NextAt
	if !old.PausedAt.IsZero() || old.Cron == s.Cron && old.Zone == s.Zone {
		next = old.NextAt
	}
	s.PausedAt, s.PausedBy, s.NextAt, s.LastAt, s.LastTaskID, s.LastState = old.PausedAt, old.PausedBy, next, old.LastAt, old.LastTaskID, old.LastState
	s.LastDuration, s.Skipped, s.CreatedAt = old.LastDuration, old.Skipped, old.CreatedAt
	return s
}

func differs(name string, differences []string) error {
	const most = 3
	if len(differences) > most {
		differences = append(differences[:most-1:most-1], "and more: "+strings.Join(fieldNames(differences[most-1:]), ", "))
	}
	return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.ScheduleDiffers, Subject: name,
		What: "schedule " + name + " is there with another definition", Why: differences}
}

func fieldNames(differences []string) []string {
	names := make([]string, len(differences))
	for i, text := range differences {
		names[i], _, _ = strings.Cut(text, " ")
	}
	return names
}

// Schedules returns all schedules by name.
func (r *Runner) Schedules(ctx context.Context) ([]jobs.Schedule, error) {
	return r.store.Schedules(ctx)
}

// GetSchedule returns a schedule, or jobs.ErrNotFound.
func (r *Runner) GetSchedule(ctx context.Context, name string) (jobs.Schedule, error) {
	list, err := r.store.Schedules(ctx)
	if err != nil {
		return jobs.Schedule{}, err
	}
	i := slices.IndexFunc(list, func(s jobs.Schedule) bool { return s.Name == name })
	if i < 0 {
		return jobs.Schedule{}, noSchedule(name)
	}
	return list[i], nil
}

func noSchedule(name string) error {
	return &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoSchedule, Subject: name, What: "no schedule " + name}
}

// PauseSchedule keeps a schedule from enqueueing anything: its ticks pass, and are not caught up. To pause one that is paused
// changes nothing.
func (r *Runner) PauseSchedule(ctx context.Context, name string) error {
	found, err := r.store.PauseSchedule(ctx, name, r.user(), now())
	return r.named(name, found, err)
}

// ResumeSchedule starts a paused schedule again, with the first tick to come.
func (r *Runner) ResumeSchedule(ctx context.Context, name string) error {
	at := now()
	found, err := r.store.ResumeSchedule(ctx, name, func(s jobs.Schedule) time.Time {
		c, err := cron.Parse(s.Cron, s.Zone)
		if err != nil { // a zone that this machine does not know: told by the worker
			return at
		}
		return c.Next(at)
	}, at)
	return r.named(name, found, err)
}

// RemoveSchedule forgets a schedule. Its tasks stay.
func (r *Runner) RemoveSchedule(ctx context.Context, name string) error {
	found := false
	err := r.store.ChangeSchedules(ctx, now(), func(have []jobs.Schedule) ([]jobs.Schedule, []string, error) {
		found = slices.ContainsFunc(have, func(s jobs.Schedule) bool { return s.Name == name })
		return nil, []string{name}, nil
	})
	return r.named(name, found, err)
}

// RunSchedule enqueues a task of a schedule now, even when the schedule is paused or an earlier task is unfinished.
func (r *Runner) RunSchedule(ctx context.Context, name string) (jobs.Task, error) {
	id, found, err := r.store.RunSchedule(ctx, name, r.user(), now())
	if err := r.named(name, found, err); err != nil {
		return jobs.Task{}, err
	}
	return r.Get(ctx, id)
}

func (r *Runner) named(name string, found bool, err error) error {
	if err == nil && !found {
		err = noSchedule(name)
	}
	if err == nil {
		r.notifier.Notify()
	}
	return err
}

// NextTicks returns the next n ticks of a schedule, as if it were not paused. Fewer: there are no more.
func (r *Runner) NextTicks(s jobs.Schedule, n int) ([]time.Time, error) {
	c, err := cron.Parse(s.Cron, s.Zone)
	if err != nil {
		return nil, err
	}
	var list []time.Time
	next := s.NextAt
	if next.IsZero() {
		next = c.Next(now())
	}
	for ; len(list) < n && !next.IsZero(); next = c.Next(next) {
		list = append(list, next)
	}
	return list, nil
}

// ScheduleRuns returns the last n tasks of a schedule that have not been deleted, newest first.
func (r *Runner) ScheduleRuns(ctx context.Context, name string, n int) ([]jobs.Task, error) {
	ids, err := r.store.Runs(ctx, name, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.store.List(ctx, jobs.Filter{IDs: ids}, db.Page{})
}
