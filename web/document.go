package web

import (
	"errors"
	"fmt"
	"net/http"

	"example.com/runner/jobs"
)

// document returns a handler that responds with the whole arguments or the whole result of a task. The page of the task
// shows only the first part of long arguments or results.
func (h *handler) document(part func(jobs.Task) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if h.o.HideArgs {
			h.writeError(w, req, http.StatusForbidden, "Arguments are hidden on this server.")
			return
		}
		ctx, cancel := readContext(req)
		defer cancel()
		t, err := h.getTask(ctx, req)
		switch {
		case errors.Is(err, jobs.ErrNotFound) || err == nil && len(part(t)) == 0:
			h.writeError(w, req, http.StatusNotFound, "The task does not exist, or it has no such document.")
		case err != nil:
			h.fail(w, req, err)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="task-%d.json"`, t.ID))
			_, _ = w.Write(part(t))
		}
	}
}
