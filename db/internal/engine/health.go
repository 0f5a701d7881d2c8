package engine

import (
	"slices"
	"strings"
	"time"
)

// ServerHealth lists conditions on a server that can make work slow or lose confirmed writes, such as old transactions. Each list has at
// most ten elements, the worst ones first.
type ServerHealth struct {
	User         string        `json:"user"`          // role of this connection
	Unseen       bool          `json:"unseen"`        // whether the server hides the sessions of other roles from this role
	NoAutovacuum bool          `json:"no_autovacuum"` // whether autovacuum is off
	Sessions     []Session     `json:"sessions"`      // transactions that have been open for more than ten seconds
	Prepared     []Prepared    `json:"prepared"`      // prepared transactions of this database
	Slots        []Slot        `json:"slots"`         // replication slots that hold a snapshot, or that no standby uses
	Standbys     []Standby     `json:"standbys"`
	SyncNames    string        `json:"sync_names"` // the setting synchronous_standby_names
	Replica      *Replica      `json:"replica"`    // nil on a primary server
	Tables       []TableHealth `json:"tables"`     // runner's tables; the tables with the most dead rows come first
	Rights       Rights        `json:"rights"`
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

// Prepared is a prepared transaction (PREPARE TRANSACTION). It holds its locks and its snapshot until somebody ends it.
type Prepared struct {
	Name   string    `json:"name"`
	Owner  string    `json:"owner"`
	At     time.Time `json:"at"`
	Behind int64     `json:"behind"` // age of this transaction: number of transactions that began after it
}

// Slot is a replication slot.
type Slot struct {
	Name   string `json:"name"`
	Active bool   `json:"active"` // whether a standby uses the replication slot
	Behind int64  `json:"behind"` // number of transactions since the snapshot that the replication slot holds; 0 if it holds none
	Bytes  int64  `json:"bytes"`  // bytes of the write-ahead log that the server keeps for the replication slot
}

// Standby is a standby server. Without the role pg_read_all_stats only Name is set.
type Standby struct {
	Name  string        `json:"name"` // application_name of the standby
	State string        `json:"state"`
	Sync  string        `json:"sync"`  // async, potential, sync or quorum
	Bytes int64         `json:"bytes"` // bytes of the write-ahead log that the standby has not applied
	Lag   time.Duration `json:"lag"`   // delay with which the standby applies the log; 0 if the server does not know it
}

// Replica describes a server that is a standby itself.
type Replica struct {
	Receives bool      `json:"receives"` // whether the server has a connection to its primary server
	Bytes    int64     `json:"bytes"`    // bytes of the write-ahead log that the server has received and not applied
	Applied  time.Time `json:"applied"`  // time of the last applied commit
}

// TableHealth is the state of a table.
type TableHealth struct {
	Name     string    `json:"name"` // name of the table, with its schema
	Live     int64     `json:"live"` // estimated number of rows
	Dead     int64     `json:"dead"` // estimated number of dead rows, which the next VACUUM can remove
	Vacuumed time.Time `json:"vacuumed"`
}

// Rights are the rights of the role that this process uses.
type Rights struct {
	User    string   `json:"user"` // name of the role
	Schema  string   `json:"schema"`
	Owner   bool     `json:"owner"`   // whether the role may change and drop the tables
	Missing []string `json:"missing"` // rights of a worker that the role lacks, such as "INSERT ON tasks"
}

// ReadOnly reports whether the role may read all tables but may not enqueue tasks.
func (r Rights) ReadOnly() bool {
	return slices.Contains(r.Missing, "INSERT ON tasks") && slices.Contains(r.Missing, "UPDATE ON tasks") &&
		!slices.ContainsFunc(r.Missing, func(right string) bool { return strings.HasPrefix(right, "SELECT") })
}

// Idle reports whether the session has an open transaction and waits for the next statement of its client.
func (s Session) Idle() bool { return strings.HasPrefix(s.State, "idle in transaction") }
