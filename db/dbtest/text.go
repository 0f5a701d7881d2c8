package dbtest

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"example.com/runner/db"
)

// tableNames matches the names of runner's tables and views. It also matches
// quoted texts, so that Text can skip the names in them.
var tableNames = regexp.MustCompile(`'(?:[^']|'')*'|\b(?:attempts|attempts_view|cancel_requests|counter_hours|` +
	`counters|cursors|dependencies|enqueue|finished|finished_seq|inputs|last_ids|limits|open_failures|output|` +
	`pauses|progress_reports|schedule_inputs|schedule_open|schedules|schedules_view|steps|task_changes|task_pauses|tasks|tasks_view|` +
	`totals|unique_keys|workers)\b`)

// Text returns a statement in the syntax of the database: with the table
// prefix, and with $1 parameters on a server.
func Text(d *db.DB, statement string) string {
	if prefix := d.Prefix(); prefix != "" {
		statement = tableNames.ReplaceAllStringFunc(statement, func(word string) string {
			if word[0] == '\'' {
				return word
			}
			return prefix + word
		})
	}
	if d.Server() == nil {
		return statement
	}
	if statement == "BEGIN IMMEDIATE" { // a transaction that writes on a server takes the advisory lock of its schema
		lock := fnv.New64a()
		_, _ = lock.Write([]byte("runner " + d.Server().Schema))
		return fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d)", int64(lock.Sum64()))
	}

	var out strings.Builder
	for i, part := range strings.Split(statement, "?") {
		if i > 0 {
			out.WriteByte('$')
			if part == "" || part[0] < '0' || part[0] > '9' {
				out.WriteString(strconv.Itoa(i))
			}
		}
		out.WriteString(part)
	}

	return out.String()
}
