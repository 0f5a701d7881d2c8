package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/cron"
	"example.com/runner/runner/internal/engine"
)

// SetSchedule adds a schedule. If a schedule of that name exists, SetSchedule
// changes its definition and keeps its history and its pause. It is idempotent,
// so a program may call it at each start. Errors of the definition are of kind
// jobs.ErrInvalid.
func (r *Runner) SetSchedule(ctx context.Context, s jobs.Schedule) error {
	_, err := r.applySchedules(ctx, []jobs.Schedule{s}, db.ApplyOptions{})
	if bad, ok := errors.AsType[*SpecError](err); ok { // return the error without the index of the schedule, because the list has only one
		return bad.Err
	}
	return err
}

// applySchedules is admin.ApplySchedules.
func (r *Runner) applySchedules(ctx context.Context, list []jobs.Schedule, o db.ApplyOptions) ([]db.Applied, error) {
	at := now()
	list = slices.Clone(list)
	if err := r.prepareSchedules(list, at); err != nil {
		return nil, err
	}

	var done []db.Applied
	err := r.store.ChangeSchedules(ctx, engine.BootID(), at, func(have []jobs.Schedule) (put []jobs.Schedule, remove []string, err error) {
		if done, err = applyAll(list, have, o); err != nil || o.DryRun {
			return nil, nil, err
		}

		for _, a := range done {
			switch a.Did {
			case db.ScheduleAdded, db.ScheduleChanged:
				put = append(put, a.Schedule)
			case db.ScheduleRemoved:
				remove = append(remove, a.Schedule.Name)
			}
		}

		return put, remove, nil
	})
	if err == nil {
		r.store.Notify()
	}

	return done, err
}

// prepareSchedules prepares the definitions in place. Its error joins those of
// the invalid ones.
func (r *Runner) prepareSchedules(list []jobs.Schedule, at time.Time) error {
	var bad []error
	names := make(map[string]bool, len(list))
	for i := range list {
		s := &list[i]
		err := prepareSchedule(s, names, at)
		if err == nil && !s.OnTick && r.tickFunc(s.Name) != nil {
			err = &jobs.FieldError{Field: "on_tick", Msg: "a function is registered for the schedule, so its definition must say so"}
		}
		if err != nil {
			bad = append(bad, &SpecError{Index: i, Err: err})
		}
		if !s.PausedAt.IsZero() {
			s.PausedAt, s.PausedBy = at, db.CurrentUser()
		}
	}

	return errors.Join(bad...)
}

// applyAll returns what the definitions of a list change about the schedules
// that exist.
func applyAll(list, have []jobs.Schedule, o db.ApplyOptions) (done []db.Applied, err error) {
	old := make(map[string]*jobs.Schedule, len(have))
	for i := range have {
		old[have[i].Name] = &have[i]
	}

	var bad []error
	for i, s := range list {
		applied, err := apply(s, old[s.Name], o)
		if err != nil {
			bad = append(bad, &SpecError{Index: i, Err: err})
		}
		done = append(done, applied)
		delete(old, s.Name)
	}

	for _, s := range have {
		if o.Prune && old[s.Name] != nil {
			done = append(done, db.Applied{Schedule: s, Did: db.ScheduleRemoved})
		}
	}

	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}

	return done, nil
}

// prepareSchedule validates a definition and fills in its defaults and its next
// tick. names are those of the valid definitions earlier in the list; it adds
// this one's.
func prepareSchedule(s *jobs.Schedule, names map[string]bool, at time.Time) error {
	*s = taskspec.WithDefaults(*s)
	if err := taskspec.ValidateSchedule(s); err != nil {
		return err
	}

	expression, err := cron.Parse(s.Cron, s.Zone)
	if err != nil {
		return err
	}
	if taskspec.AtBoot(s.Cron) && engine.BootID() == "" {
		return &jobs.FieldError{Field: "cron", Msg: "@reboot needs Linux, because this system has no id of a boot; " +
			"let a service manager start the command at boot"}
	}
	if names[s.Name] {
		return &jobs.FieldError{Field: "name", Msg: fmt.Sprintf("%q appears twice", s.Name)}
	}

	names[s.Name] = true
	s.NextAt, s.CreatedAt, s.UpdatedAt = expression.Next(at), at, at
	return nil
}

// apply returns the change that a definition makes to the schedule old of the
// same name, which may be nil.
func apply(s jobs.Schedule, old *jobs.Schedule, o db.ApplyOptions) (db.Applied, error) {
	if old == nil {
		if !s.PausedAt.IsZero() {
			s.NextAt = time.Time{}
		}
		return db.Applied{Schedule: s, Did: db.ScheduleAdded}, nil
	}

	differences := taskspec.ScheduleChanges(old, &s)
	switch {
	case len(differences) == 0:
		return db.Applied{Schedule: *old, Did: db.ScheduleUnchanged}, nil
	case o.Keep:
		return db.Applied{}, &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.ScheduleDiffers, Subject: s.Name,
			What: "schedule " + s.Name + " exists with another definition", Why: differences}
	}

	return db.Applied{Schedule: redefined(*old, s), Did: db.ScheduleChanged}, nil
}

// redefined returns the definition s with the history and the pause of the
// existing schedule. It also keeps the next tick if the cron expression and the
// zone are unchanged, if the schedule is paused, or if the tick is due: a
// change of the times must not lose a tick that no worker has seen yet.
func redefined(old, s jobs.Schedule) jobs.Schedule {
	next := s.NextAt
	missed := !old.NextAt.IsZero() && !old.NextAt.After(s.UpdatedAt) && !taskspec.AtBoot(s.Cron)
	if !old.PausedAt.IsZero() || old.Cron == s.Cron && old.Zone == s.Zone || missed {
		next = old.NextAt
	}
	s.PausedAt, s.PausedBy, s.NextAt, s.Skipped, s.CreatedAt = old.PausedAt, old.PausedBy, next, old.Skipped, old.CreatedAt
	s.LastAt, s.LastTaskID, s.LastState, s.LastDuration = old.LastAt, old.LastTaskID, old.LastState, old.LastDuration
	s.LastSuccess, s.AlertedAt = old.LastSuccess, old.AlertedAt
	return s
}

// RemoveSchedule deletes a schedule. Its tasks stay. It returns
// jobs.ErrNotFound if there is no such schedule.
func (r *Runner) RemoveSchedule(ctx context.Context, name string) error {
	found := false
	err := r.store.ChangeSchedules(ctx, "", now(), func(have []jobs.Schedule) ([]jobs.Schedule, []string, error) {
		found = slices.ContainsFunc(have, func(s jobs.Schedule) bool { return s.Name == name })
		return nil, []string{name}, nil
	})
	return r.named(name, found, err)
}

// runSchedule is admin.RunSchedule.
func (r *Runner) runSchedule(ctx context.Context, name string) (jobs.Task, error) {
	made, err := r.madeSpec(ctx, name)
	if err != nil {
		return jobs.Task{}, err
	}

	var refused error
	id, found, err := r.store.RunSchedule(ctx, name, db.CurrentUser(), now(), func(spec *jobs.Spec) error {
		if made != nil {
			made.Schedule, made.CreatedBy = spec.Schedule, spec.CreatedBy
			*spec = *made
		}
		if refused = r.prepareTick(ctx, spec); refused != nil {
			return errRefused
		}
		return nil
	})
	if refused != nil {
		return jobs.Task{}, refused
	}
	if err := r.named(name, found, err); err != nil {
		return jobs.Task{}, err
	}

	return r.Get(ctx, id)
}

func (r *Runner) named(name string, found bool, err error) error {
	if err == nil && !found {
		err = db.NoSchedule(name)
	}
	if err == nil {
		r.store.Notify()
	}
	return err
}
