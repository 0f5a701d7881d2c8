package engine

import (
	"database/sql"
	"errors"
	"strings"

	"example.com/runner/db/internal/sqltext"
)

// FrozenTables are the tables that refuse writes while a database is moved. What else there is follows from their rows.
var FrozenTables = []string{"tasks", "schedules", "limits", "pauses"}

// FrozenText is what the message of a trigger that refuses writes begins with.
const FrozenText = "this database "

// FrozenMessage returns the message of a trigger.
func FrozenMessage(body string) string {
	_, text, _ := strings.Cut(body, "'"+FrozenText)
	end := strings.LastIndexByte(text, '\'')
	if end < 0 {
		return ""
	}
	return FrozenText + strings.ReplaceAll(text[:end], "''", "'")
}

// NoRow returns nil for the error of a query that has no row.
func NoRow(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// SelectAtWork reads which worker has given a sign of life that is still good at [1], and until when. Index: workers_live.
var SelectAtWork = sqltext.Query(`SELECT name, beat_at + lease FROM {workers} WHERE ended_at IS NULL AND beat_at + lease > ?
	ORDER BY beat_at DESC LIMIT 1`)
