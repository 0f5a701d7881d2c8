package engine

import (
	"database/sql"
	"errors"
	"strings"

	"example.com/runner/db/internal/sqltext"
)

// FrozenTables are the tables that reject writes during a migration. The other tables change only together with these.
var FrozenTables = []string{"tasks", "schedules", "limits", "pauses"}

// FrozenText is the beginning of the message of a trigger that rejects writes.
const FrozenText = "this database "

// FrozenMessage returns the message of such a trigger. body is its source.
func FrozenMessage(body string) string {
	_, text, _ := strings.Cut(body, "'"+FrozenText)
	end := strings.LastIndexByte(text, '\'')
	if end < 0 {
		return ""
	}
	return FrozenText + strings.ReplaceAll(text[:end], "''", "'")
}

// NoRow returns nil for sql.ErrNoRows, and other errors unchanged.
func NoRow(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// SelectAtWork returns a worker whose lease has not expired at [1], and when it expires. Index: workers_live.
var SelectAtWork = sqltext.Query(`SELECT name, beat_at + lease FROM {workers} WHERE ended_at IS NULL AND beat_at + lease > ?
	ORDER BY beat_at DESC LIMIT 1`)
