package db

import (
	"context"
	"encoding/json"
)

// setProgress stores the progress report [3] of an attempt if the claim of task
// [1], generation [2], is still running.
var setProgress = command(`INSERT INTO {progress_reports} (task_id, generation_id, report)
SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM {tasks} WHERE id = ?1 AND generation_id = ?2 AND state = 'running')
` + replaceProgress)

// setLastProgress is setProgress in the transaction that has just finished the
// attempt.
var setLastProgress = command(`INSERT INTO {progress_reports} (task_id, generation_id, report) VALUES (?, ?, ?) ` + replaceProgress)

const replaceProgress = `ON CONFLICT (task_id) DO UPDATE SET generation_id = excluded.generation_id, report = excluded.report`

// Report is a progress report of a running attempt, as JSON.
type Report struct {
	ClaimID
	Progress json.RawMessage
}

// WriteProgress stores reports in one transaction. It drops the reports of
// attempts that no longer own their task.
func (w *Worker) WriteProgress(ctx context.Context, reports []Report) error {
	return w.db.update(ctx, normal, func(t *tx) error {
		for _, r := range reports {
			if err := t.run(setProgress, r.ID, r.GenerationID, string(r.Progress)); err != nil {
				return err
			}
		}
		return nil
	})
}
