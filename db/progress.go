package db

import (
	"context"
	"encoding/json"
)

// setProgress notes what an attempt reports [1], if the claim of task [2], generation [3], is still running. It is no change of state
// or owner, and keeps the generation.
const setProgress = `UPDATE tasks SET progress = ? WHERE id = ? AND generation_id = ? AND state = 'running'`

// setLastProgress is setProgress in the transaction that has just finished the attempt.
const setLastProgress = `UPDATE tasks SET progress = ? WHERE id = ?`

// Report is what a running attempt says of its progress: JSON.
type Report struct {
	ClaimID
	Progress json.RawMessage
}

// WriteProgress stores reports, in one transaction. Those of attempts that own their task no more are dropped.
func (w *Worker) WriteProgress(ctx context.Context, reports []Report) error {
	return w.db.update(ctx, normal, func(t *tx) error {
		for _, r := range reports {
			if _, err := t.exec(setProgress, string(r.Progress), r.ID, r.GenerationID); err != nil {
				return err
			}
		}
		return nil
	})
}
