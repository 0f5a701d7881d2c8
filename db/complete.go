package db

import (
	"encoding/json"
	"errors"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// completeTasks completes many tasks of worker [3] at the time [1] in one
// statement. [2] is a JSON array of completions. It's for engines with the
// trait CompletesAsJSON, where each statement is a round trip; in a file it
// takes a sixth more time than completeSome.
//
// The fragments {same_completion} and {unindexed} prevent a bad plan. A
// statement that a session prepares while the tables are small would compare
// all running tasks, or even all tasks, with each completion.
var completeTasks = command(completeAll)

const completeAll = `UPDATE {tasks} SET generation_id = tasks.generation_id + 1,
	lease_expires_at = NULL, state = 'completed', outcome = d.outcome,
	result = d.result, started_at = d.started_at, finished_at = d.finished_at, updated_at = ?
FROM {completions}
WHERE {same_completion} AND tasks.generation_id = d.generation_id AND tasks.worker = ? AND {unindexed}tasks.state = 'running'`

// completeSome completes n tasks on other engines. One statement for sixteen
// tasks takes two thirds of the time of sixteen. It has a part for each task:
// the id, the generation and the values to set. After the parts come the time
// and the worker.
var completeSome = &sqltext.Series{Part: "(?, ?, ?, ?, ?, ?)", Separator: ", ", Template: `
WITH d (id, generation_id, outcome, result, started_at, finished_at) AS (VALUES {parts})
UPDATE {tasks} SET generation_id = tasks.generation_id + 1, lease_expires_at = NULL,
	state = 'completed', outcome = d.outcome, result = d.result,
	started_at = d.started_at, finished_at = d.finished_at, updated_at = ?
FROM d WHERE tasks.id = d.id AND tasks.generation_id = d.generation_id AND +tasks.worker = ? AND +tasks.state = 'running'`}

// completeTogether lists how many tasks a statement completes. With fewer than
// four it saves no time.
var completeTogether = [...]int{16, 8, 4}

// completion is an end that only completes its task, as an element of the JSON
// for completeTasks.
type completion struct {
	ID           int64           `json:"id"`
	GenerationID int64           `json:"generation_id"`
	Outcome      json.RawMessage `json:"outcome,omitempty"`
	Result       *string         `json:"result,omitempty"` // JSON, as a text
	StartedAt    int64           `json:"started_at"`
	FinishedAt   int64           `json:"finished_at"`

	at     int             // index of the end in the list of Finish
	change taskspec.Change // new state of the task
}

// completionsOf returns the entries of list that only complete a task: without
// anything else to store and without a hook. defaults are the hooks of tasks
// without hooks of their own.
func completionsOf(list []Finish, defaults commands.Hooks, now time.Time) []completion {
	all := make([]completion, 0, len(list))
	for i := range list {
		f := &list[i]
		if f.Release || !f.InTx.IsZero() || f.Progress != nil || len(f.Output.Add) > 0 || f.Output.Delete != (Pieces{}) ||
			f.Output.Cut != (Cut{}) {
			continue
		}

		c := taskspec.Next(f.Task, f.Outcome, now)
		if c.State != jobs.Completed {
			continue
		}
		if hooks := taskspec.HooksWithDefaults(f.Task.Hooks, defaults); taskspec.HooksOf(&f.Task, &hooks, &f.Outcome, c.State) != nil {
			continue
		}

		o := f.Outcome
		row := completion{ID: f.Task.ID, GenerationID: f.Task.GenerationID, StartedAt: o.Started.UnixMilli(),
			FinishedAt: o.Finished.UnixMilli(), at: i, change: c}
		if text, ok := encodeOutcome(o, "", "", true).(string); ok {
			row.Outcome = json.RawMessage(text)
		}
		if len(c.Result) > 0 {
			row.Result = new(string(c.Result))
		}

		all = append(all, row)
	}

	return all
}

// errRefusedTogether says that a statement for several attempts couldn't end
// all of them. It may have ended some, so the transaction must be rolled back.
var errRefusedTogether = errors.New("an end was refused")

// completeMany ends the attempts of list that only complete their task, with
// few statements, and returns those in the order of the list. The caller ends
// the others with finishOne. If a statement refuses an attempt, such as one
// that has lost its task, the error is errRefusedTogether.
func (t *tx) completeMany(worker int64, list []Finish, now time.Time) ([]completion, error) {
	all := completionsOf(list, t.hooks, now)
	together := completeTogether[:]
	if t.db.traits.CompletesAsJSON && len(all) > 1 {
		together = []int{len(all)}
	}

	from := 0
	for _, rows := range together {
		for ; len(all)-from >= rows; from += rows {
			n, err := t.complete(worker, all[from:from+rows], now)
			if err == nil && n != int64(rows) {
				err = errRefusedTogether
			}
			if err != nil {
				return nil, err
			}
		}
	}

	return all[:from], nil
}

// complete completes tasks of a worker by one statement, and returns how many.
func (t *tx) complete(worker int64, rows []completion, now time.Time) (int64, error) {
	if t.db.traits.CompletesAsJSON {
		return t.exec(completeTasks, now.UnixMilli(), jsonText(rows), worker)
	}
	args := make([]any, 0, 6*len(rows)+2)
	for _, row := range rows {
		args = append(args, row.ID, row.GenerationID, nullText(row.Outcome), row.result(), row.StartedAt, row.FinishedAt)
	}

	return t.exec(completeSome.Of(len(rows)), append(args, now.UnixMilli(), worker)...)
}

func (c *completion) result() any {
	if c.Result == nil {
		return nil
	}
	return *c.Result
}
