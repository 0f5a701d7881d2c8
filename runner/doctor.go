package runner

import (
	"context"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// insecure returns an error when commands must not run, because a user other than this process's may write the database.
func (r *Runner) insecure() error {
	if _, commands := r.handlers[jobs.CommandJob]; !commands || r.options.InsecurePerms || r.store.Server() != nil {
		return nil // on a server its rights are the server's affair
	}
	return db.Insecure(r.Path())
}

// sound returns an error when the file must not be worked on: somebody has changed what its own tables do, or it was left by a crash and
// is damaged.
func (r *Runner) sound(ctx context.Context) error {
	if !r.options.ForeignTriggers {
		if err := r.store.Foreign(ctx); err != nil {
			return err
		}
	}
	if r.store.Unclean() {
		return r.store.Damage(ctx)
	}
	return nil
}
