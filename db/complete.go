package db

import (
	"encoding/json"
	"time"

	"example.com/runner/jobs"
)

// completeTasks is completeTask for many tasks at once, of worker [3] at [1]: [2] is a JSON array of objects with the columns of d. It is
// for servers, where each statement is a message there and back: a hundred ends are one. Returns the ids of those that it has completed, and
// what selectUses does. The empty text and the 0 that are added keep the planner from all tasks that run, each of which it would compare with
// each of d.
const completeTasks = `UPDATE tasks SET generation_id = tasks.generation_id + 1, lease_expires_at = NULL, state = 'completed', outcome = d.outcome,
	result = d.result, finished_at = d.finished_at, updated_at = ?
FROM json_to_recordset(CAST(? AS json)) AS d (id bigint, generation_id bigint, outcome json, result text, finished_at bigint)
WHERE tasks.id = d.id AND tasks.generation_id = d.generation_id AND tasks.worker + 0 = ? AND tasks.state || '' = 'running'
RETURNING tasks.id, (` + serverUses + `) AS uses`

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
	at      map[int64]int // of ids in the list
	changes map[int]jobs.Change
	lanes   bool // some are in one
}

func completionsOf(list []Finish, now time.Time) completions {
	all := completions{at: map[int64]int{}, changes: map[int]jobs.Change{}}
	for i := range list {
		f := &list[i]
		if f.Release || !f.InTx.IsZero() || f.Progress != nil || len(f.Output.Add) > 0 || f.Output.Delete != (Pieces{}) || f.Output.Cut != (Cut{}) {
			continue
		}
		c := jobs.Next(f.Task, f.Outcome, now)
		if _, twice := all.at[f.Task.ID]; twice || c.State != jobs.Completed {
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
		all.at[f.Task.ID], all.changes[i] = i, c
		all.rows = append(all.rows, row)
		all.lanes = all.lanes || f.Task.Lane != ""
	}
	return all
}

// completeMany ends those attempts of list that complete their task and have nothing else to store, and says which: they are answered in
// done. The others, and those that were refused, are for finishOne.
func (t *tx) completeMany(worker int64, list []Finish, done []Finished, now time.Time) (map[int]bool, error) {
	all := completionsOf(list, now)
	if len(all.rows) < 2 {
		return nil, nil
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
	completed := make(map[int]bool, len(ended))
	for _, e := range ended {
		i := all.at[e.ID]
		completed[i], done[i].Change, t.used = true, all.changes[i], usesOf(e.Uses)
	}
	return completed, nil
}
