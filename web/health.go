package web

import (
	"context"
	"io"
	"net/http"
	"time"

	"example.com/runner/internal/admin"
)

// healthz responds with 200 while the process runs.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

// heartbeatTimeout is the largest age of a heartbeat of a worker that counts as alive. For long leases, the limit is
// twice the heartbeat interval instead.
const heartbeatTimeout = 30 * time.Second

// readyz responds with 200 if tasks can be enqueued and run: the database accepts writes and a worker is alive. It
// writes nothing itself.
func (h *handler) readyz(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()
	if why := h.unready(ctx); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ok\n")
}

// unready returns the reason why tasks would not run, or "" if they would.
func (h *handler) unready(ctx context.Context) string {
	workers, err := h.r.Workers(ctx)
	switch {
	case err != nil:
		return "the database cannot be read"
	case admin.Writable(h.r) != nil:
		return "the database cannot be written"
	}
	for _, worker := range workers {
		if !worker.Dead && time.Since(worker.BeatAt) <= max(heartbeatTimeout, worker.Lease/3) {
			return ""
		}
	}
	return "no worker was seen within " + heartbeatTimeout.String()
}
