package web

import (
	"context"
	"io"
	"net/http"
	"time"

	"example.com/runner/db"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// healthz responds with 200 while the process runs.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") }

// heartbeatTimeout is how old the last heartbeat of a live worker may be. A
// worker with a lease above 90 s has more time: a third of its lease, which is
// two heartbeat intervals.
const heartbeatTimeout = 30 * time.Second

// readyz responds with 200 if users can enqueue tasks and workers can run them.
// This requires that the database accepts writes and that a worker is alive.
// readyz itself writes nothing to the database.
func (h *handler) readyz(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()
	if why := h.unreadyReason(ctx); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, "ok\n")
}

// unreadyReason returns the reason why no worker would run a new task, or "" if
// a worker would run it.
func (h *handler) unreadyReason(ctx context.Context) string {
	workers, err := admin.Workers(ctx, h.r)
	switch {
	case err != nil:
		return "the database cannot be read"
	case writable(h.r) != nil:
		return "the database cannot be written"
	}

	for _, worker := range workers {
		if !worker.Dead && time.Since(worker.BeatAt) <= max(heartbeatTimeout, worker.Lease/3) {
			return ""
		}
	}

	return "no worker was seen within " + heartbeatTimeout.String()
}

// writable returns an error if a process could write nothing: another file has
// the database's path, or the disk is full.
func writable(r *runner.Runner) error {
	if err := db.Of(r).Replaced(); err != nil {
		return err
	}
	return db.Of(r).Space()
}
