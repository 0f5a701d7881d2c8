package db

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// completeTasks is completeTask for many tasks at once, of worker [3] at [1]: [2] is a JSON array of objects with the columns of d. It is
// for servers, where each statement is a message there and back: a hundred ends are one. Returns the ids of those that it has
// completed, and what selectFeatures does. The empty text and the 0 that are added keep the planner from all tasks that run, each
// of which it would compare with each of d.
var completeTasks = command(completeAll)

const completeAll = `UPDATE {tasks} SET generation_id = tasks.generation_id + 1,
	lease_expires_at = NULL, state = 'completed', outcome = d.outcome,
	result = d.result, finished_at = d.finished_at, updated_at = ?
FROM json_to_recordset(CAST(? AS json)) AS d (id bigint, generation_id bigint, outcome json, result text, finished_at bigint)
WHERE tasks.id = d.id AND tasks.generation_id = d.generation_id AND tasks.worker + 0 = ? AND tasks.state || '' = 'running'
RETURNING tasks.id, (SELECT {features}) AS uses`

// completeSome is completeTask for as many tasks as %s has rows, of worker [2] at [1]. A row is the id, the generation and what
// completeTask sets. It is for files, where the end of a task in a statement of sixteen takes two thirds of the time of a statement
// of its own.
const completeSome = `WITH d (id, generation_id, outcome, result, finished_at) AS (VALUES %s)
UPDATE {tasks} SET generation_id = tasks.generation_id + 1, lease_expires_at = NULL,
	state = 'completed', outcome = d.outcome, result = d.result,
	finished_at = d.finished_at, updated_at = ?
FROM d WHERE tasks.id = d.id AND tasks.generation_id = d.generation_id AND +tasks.worker = ? AND +tasks.state = 'running'`

// completeTogether are statements of that kind and how many rows they have. Fewer than four do not pay.
var completeTogether = []struct {
	rows int
	*statement
}{{16, completeRows(16)}, {8, completeRows(8)}, {4, completeRows(4)}}

func completeRows(n int) *statement {
	return command(fmt.Sprintf(completeSome, strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?), ", n), ", ")))
}

// completion is a row of completeTasks.
type completion struct {
	ID           int64           `json:"id"`
	GenerationID int64           `json:"generation_id"`
	Outcome      json.RawMessage `json:"outcome,omitempty"`
	Result       *string         `json:"result,omitempty"` // JSON, as a text
	FinishedAt   int64           `json:"finished_at"`
}

// completions are those of a list of ends that complete their task and have nothing else to store.
type completions struct {
	rows    []completion
	at      []int         // of each row: its place in the list
	changes []jobs.Change // of each row
	lanes   bool          // some are in one
}

func completionsOf(list []Finish, now time.Time) completions {
	all := completions{rows: make([]completion, 0, len(list)), at: make([]int, 0, len(list)), changes: make([]jobs.Change, 0, len(list))}
	for i := range list {
		f := &list[i]
		if f.Release || !f.InTx.IsZero() || f.Progress != nil || len(f.Output.Add) > 0 || f.Output.Delete != (Pieces{}) ||
			f.Output.Cut != (Cut{}) {
			continue
		}
		c := jobs.Next(f.Task, f.Outcome, now)
		if c.State != jobs.Completed {
			continue
		}
		o := f.Outcome
		row := completion{ID: f.Task.ID, GenerationID: f.Task.GenerationID, FinishedAt: o.Finished.UnixMilli()}
		if text, ok := encodeOutcome(o, "", "", true).(string); ok {
			row.Outcome = json.RawMessage(text)
		}
		if len(c.Result) > 0 {
			row.Result = new(string(c.Result))
		}
		all.rows, all.at, all.changes = append(all.rows, row), append(all.at, i), append(all.changes, c)
		all.lanes = all.lanes || f.Task.Lane != ""
	}
	return all
}

// errRefusedTogether says that one of the ends that share a statement was refused. The others may have been written: the
// transaction is over.
var errRefusedTogether = errors.New("an end was refused")

// completeMany ends those attempts of list that complete their task and have nothing else to store, and says which: they are answered in
// done. The others are for finishOne. On a server these are also those that were refused; in a file the error is errRefusedTogether then.
func (t *tx) completeMany(worker int64, list []Finish, done []Finished, now time.Time) (completed []bool, err error) {
	all := completionsOf(list, now)
	if t.db.traits.CompletesAsJSON {
		return t.completeOnServer(worker, all, done, now)
	}
	completed = make([]bool, len(list))
	from := 0
	for _, statement := range completeTogether {
		for ; len(all.rows)-from >= statement.rows; from += statement.rows {
			args := make([]any, 0, 5*statement.rows+2)
			for _, row := range all.rows[from : from+statement.rows] {
				args = append(args, row.ID, row.GenerationID, nullText(row.Outcome), row.result(), row.FinishedAt)
			}
			n, err := t.exec(statement.statement, append(args, now.UnixMilli(), worker)...)
			if err == nil && n != int64(statement.rows) {
				err = errRefusedTogether
			}
			if err != nil {
				return nil, err
			}
		}
	}
	t.wrote = t.wrote || from > 0
	for k := range from {
		completed[all.at[k]], done[all.at[k]].Change = true, all.changes[k]
	}
	return completed, nil
}

func (c *completion) result() any {
	if c.Result == nil {
		return nil
	}
	return *c.Result
}

func (t *tx) completeOnServer(worker int64, all completions, done []Finished, now time.Time) (completed []bool, err error) {
	of := make(map[int64]int, len(all.rows)) // rows by the ids of their tasks
	for k, row := range all.rows {
		of[row.ID] = k
	}
	if len(of) < max(len(all.rows), 2) { // a task that ends twice: the first of its attempts had lost it
		return make([]bool, len(done)), nil
	}
	text, err := json.Marshal(all.rows)
	if err != nil {
		return nil, err
	}
	var ended []struct {
		ID   int64 `db:"id"`
		Uses int64 `db:"uses"`
	}
	if err := t.list(&ended, completeTasks, now.UnixMilli(), string(text), worker); err != nil {
		return nil, err
	}
	completed = make([]bool, len(done))
	for _, e := range ended {
		k := of[e.ID]
		completed[all.at[k]], done[all.at[k]].Change, t.used = true, all.changes[k], featuresOf(e.Uses)
	}
	return completed, nil
}
