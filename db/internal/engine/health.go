package engine

import (
	"strings"
	"time"
)

// ServerHealth lists the transactions on a server that make work slow.
type ServerHealth struct {
	User     string    `json:"user"`     // role of this connection
	Unseen   bool      `json:"unseen"`   // whether the server hides the sessions of other roles from this role
	Sessions []Session `json:"sessions"` // up to ten transactions that have been open for more than ten seconds
}

// Session describes another session that has an open transaction. Without the role pg_read_all_stats, the fields State and Client and
// the times are empty for the sessions of other roles.
type Session struct {
	PID         int       `json:"pid"`
	User        string    `json:"user"`
	Application string    `json:"application"`
	Client      string    `json:"client"` // address of the client's host; "" on a Unix socket
	State       string    `json:"state"`  // state as in pg_stat_activity, such as "idle in transaction"
	Begun       time.Time `json:"begun"`  // time at which the transaction began
	QueryBegun  time.Time `json:"query_begun"`
	Snapshot    bool      `json:"snapshot"` // whether the session holds a snapshot, which keeps VACUUM from removing dead rows
	Behind      int64     `json:"behind"`   // age of the snapshot: number of transactions that began after it
	HasLock     bool      `json:"has_lock"` // whether the session holds the write lock of the schema
}

// Idle reports whether the session has an open transaction and waits for the next statement of its client.
func (s Session) Idle() bool { return strings.HasPrefix(s.State, "idle in transaction") }
