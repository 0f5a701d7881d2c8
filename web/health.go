package web

import (
	"context"
	"io"
	"net/http"
	"time"

	"example.com/runner/internal/admin"
)

// healthz says that the process lives.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

// heartbeatTimeout is how lately a worker must have been seen for tasks to run: or twice the pause between its heartbeats.
const heartbeatTimeout = 30 * time.Second

// readyz says whether tasks can be enqueued and are run: the database takes writes, and a worker was seen. It writes nothing itself.
func (h *handler) readyz(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()
	if why := h.unready(ctx); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ok\n")
}

// unready is why tasks would not run; empty: they would.
func (h *handler) unready(ctx context.Context) string {
	workers, err := h.r.Workers(ctx)
	switch {
	case err != nil:
		return "the database cannot be read"
	case admin.Writable(h.r) != nil:
		return "the database cannot be written"
	}
	for _, worker := range workers {
		if time.Since(worker.BeatAt) <= max(heartbeatTimeout, worker.Lease/3) {
			return ""
		}
	}
	return "no worker was seen within " + heartbeatTimeout.String()
}
