package doctor

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/runner"
)

// otherDB checks the other databases on this machine, which runner would use without --db and without environment variables. The user may
// have added tasks to such a database by mistake. otherDB warns if it contains unfinished tasks and has no worker.
func (d *Doctor) otherDB(ctx context.Context, report reportFunc) error {
	ok := true
	for _, path := range d.Others {
		tasks, workers, err := countUnfinished(ctx, path)
		if err == nil && tasks > 0 && workers == 0 {
			ok = false
			report(Warn, fmt.Sprintf("%s: %s, no worker", path, humanize.Plural(tasks, "task")), "runner --db "+path+" list -s unfinished")
		}
	}
	if ok {
		report(OK, "no tasks without a worker in other databases", "")
	}
	return nil
}

// countUnfinished returns how many unfinished tasks and how many workers a database has. It returns an error if reading the database takes
// too long.
func countUnfinished(ctx context.Context, path string) (tasks, workers int, err error) {
	ctx, cancel := context.WithTimeout(ctx, otherTimeout)
	defer cancel()
	r, err := runner.Open(ctx, path, runner.Options{ReadOnly: true, BusyTimeout: otherTimeout})
	if err != nil {
		return 0, 0, err
	}
	defer r.Close()
	s, err := present.ReadStatus(ctx, r, time.Now(), nil)
	for _, q := range s.Queues {
		for _, n := range q.Counts {
			tasks += n
		}
	}
	return tasks, s.Alive, err
}
