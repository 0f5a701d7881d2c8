package db

import (
	"slices"
	"time"

	"example.com/runner/jobs"
)

// suspectArm is claimArm for suspects, as jobs.Task.Suspect says. Index: tasks_lost, which holds few.
const suspectArm = `SELECT id, generation_id, priority, ? AS most FROM tasks WHERE +state = 'pending' AND queue = ? AND job = ?
	AND losses >= 1 AND losses >= max_losses - 1 AND finished_at IS NULL`

// selectSuspects lists where suspects wait, and since when. Index: tasks_lost.
const selectSuspects = `SELECT queue, job, updated_at FROM tasks
WHERE +state = 'pending' AND losses >= 1 AND losses >= max_losses - 1 AND finished_at IS NULL LIMIT 100`

// suspectPatience is how long a suspect waits for an idle worker before busy ones take nothing more, so that one of them becomes it.
const suspectPatience = 30 * time.Second

// suspect is where a task waits that may have killed its worker.
type suspect struct {
	Queue     string `db:"queue"`
	Job       string `db:"job"`
	UpdatedAt number `db:"updated_at"`
}

// look takes note of where suspects wait that c could run.
func (t *tx) look(c *claimer) error {
	c.suspects = nil
	if err := t.list(&c.suspects, selectSuspects); err != nil {
		return err
	}
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool {
		return !slices.ContainsFunc(c.jobs, func(j ClaimJob) bool { return j.Job == s.Job })
	})
	return nil
}

// suspect takes one suspect for an idle worker. For a busy one, over says that it should take nothing. One that a limit holds back
// holds back nobody.
func (t *tx) suspect(c *claimer, ask Claim, queues []string, g *turnstile, now time.Time) (claimed []jobs.Task, over bool, err error) {
	for _, queue := range queues {
		if most, limited := ask.Limit[queue]; limited && most <= 0 {
			continue
		}
		may := func(s suspect) bool { return s.Queue == queue && g.room(jobs.JobTarget, s.Job) > 0 }
		switch {
		case !slices.ContainsFunc(c.suspects, may):
			continue
		case !ask.Idle:
			over = over || slices.ContainsFunc(c.suspects, func(s suspect) bool {
				return may(s) && now.Sub(s.UpdatedAt.time()) >= suspectPatience
			})
			continue
		}
		if claimed, err = t.claimFirst(c, c.alone, queue, 1, g.open(c.jobs), ask.Lease, now); len(claimed) > 0 || err != nil {
			g.take(queue, claimed)
			return claimed, true, err
		}
		c.suspects = slices.DeleteFunc(c.suspects, may) // somebody else has taken them
	}
	return nil, over, nil
}
