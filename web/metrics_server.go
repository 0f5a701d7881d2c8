package web

import (
	"time"

	"example.com/runner/internal/admin"
)

// server adds the metrics of a PostgreSQL server. For a SQLite file, h is nil, and server adds nothing.
func (c *collection) server(h *admin.ServerHealth) {
	if h == nil {
		return
	}
	snapshot := c.gauge("runner_server_oldest_snapshot_seconds",
		"Age of the oldest snapshot that another transaction holds; 0 if none is older than ten seconds.")
	transactions := c.gauge("runner_server_oldest_snapshot_transactions", "Transactions since the oldest snapshot that anything holds.")
	idle := c.gauge("runner_server_idle_in_transaction_seconds", "Age of the oldest transaction that is idle; 0 below ten seconds.")
	var oldest, idlest time.Duration
	var behind int64
	for _, s := range h.Sessions {
		age := c.at.Sub(s.Begun)
		if s.Snapshot {
			behind = max(behind, s.Behind)
		}
		if s.Begun.IsZero() {
			continue
		}
		if s.Snapshot {
			oldest = max(oldest, age)
		}
		if s.Idle() {
			idlest = max(idlest, age)
		}
	}
	for _, p := range h.Prepared {
		oldest, behind = max(oldest, c.at.Sub(p.At)), max(behind, p.Behind)
	}
	for _, s := range h.Slots {
		behind = max(behind, s.Behind)
	}
	snapshot.add(oldest.Seconds())
	transactions.add(float64(behind))
	idle.add(idlest.Seconds())
	dead := c.gauge("runner_server_dead_rows", "Dead rows of runner's tables, which the next VACUUM can remove.")
	for _, t := range h.Tables {
		dead.add(float64(t.Dead), "table", t.Name)
	}
	lag := c.gauge("runner_server_standby_lag_seconds", "Time by which a standby applies the log late.")
	bytes := c.gauge("runner_server_standby_lag_bytes", "Bytes of the log that a standby has not applied.")
	for _, s := range h.Standbys {
		lag.add(s.Lag.Seconds(), "standby", s.Name)
		bytes.add(float64(s.Bytes), "standby", s.Name)
	}
	if h.Replica != nil {
		bytes.add(float64(h.Replica.Bytes), "standby", "this server")
	}
	problem := c.gauge("runner_server_problem", "1 for each condition on the server that needs attention.")
	for _, p := range admin.ServerProblems(h, c.at) {
		problem.add(1, "code", p.Code)
	}
}
