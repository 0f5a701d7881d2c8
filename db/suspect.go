package db

import (
	"slices"
	"time"

	"example.com/runner/jobs"
)

// selectSuspects lists pending suspects (see taskspec.Suspect) in the order in
// which they start. updated_at is the time since which a suspect waits. Index:
// tasks_lost, which has few entries.
var selectSuspects = query(`SELECT id, generation_id, queue, job, run_at, updated_at FROM {tasks} WHERE ` + pendingSuspect + `
	ORDER BY priority DESC, id LIMIT 100`)

const pendingSuspect = `{unindexed}state = 'pending' AND losses >= 1 AND losses >= max_losses - 1 AND finished_at IS NULL`

// suspectPatience is how long a suspect waits for an idle worker. After that,
// busy workers claim no more tasks, so that one of them becomes idle and claims
// the suspect.
const suspectPatience = 30 * time.Second

type suspect struct {
	candidate
	Queue     string `db:"queue"`
	UpdatedAt number `db:"updated_at"`
}

// findSuspects stores the pending suspects that the worker can run in
// c.suspects.
func (t *tx) findSuspects(c *claimer) error {
	c.suspects = nil
	if err := t.list(&c.suspects, selectSuspects); err != nil {
		return err
	}
	c.suspects = slices.DeleteFunc(c.suspects, func(s suspect) bool {
		return !slices.ContainsFunc(c.jobs, func(j ClaimJob) bool { return j.Job == s.Job })
	})
	return nil
}

// claimSuspect claims a suspect for an idle worker. over says that the worker
// must claim no other task: it has a suspect, or it's busy and some suspect has
// waited for too long. A suspect that a limit blocks doesn't keep busy workers
// from other tasks.
func (t *tx) claimSuspect(c *claimer, ask Claim, queues []string, g *admission, now time.Time) (claimed []jobs.Task, over bool, err error) {
	for _, queue := range queues {
		if limit, limited := ask.Limit[queue]; limited && limit <= 0 {
			continue
		}

		may := func(s suspect) bool { return s.Queue == queue && g.permits(queue, s.Job, false) }
		switch {
		case !slices.ContainsFunc(c.suspects, may):
			continue
		case !ask.Idle:
			over = over || slices.ContainsFunc(c.suspects, func(s suspect) bool {
				return may(s) && now.Sub(s.UpdatedAt.time()) >= suspectPatience
			})
			continue
		}

		for i := slices.IndexFunc(c.suspects, may); i >= 0; i = slices.IndexFunc(c.suspects, may) {
			claimed, err = t.claimThese(c, []candidate{c.suspects[i].candidate}, ask.Lease, now)
			if len(claimed) > 0 || err != nil {
				g.count(queue, c.suspects[i].Job, false)
				return claimed, true, err
			}
			c.suspects = slices.Delete(c.suspects, i, i+1) // another worker has claimed it
		}
	}
	return nil, over, nil
}
