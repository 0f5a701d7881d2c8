package db

import (
	"context"

	"example.com/runner/db/internal/sqltext"
)

// statement is an SQL statement of this package: a template that each database
// renders in its dialect.
type statement = sqltext.Statement

// query returns a statement that only reads.
func query(template string) *statement { return sqltext.Query(template) }

// command returns a statement that may change rows.
func command(template string) *statement { return sqltext.Command(template) }

// readValue reads the single value of a query. It returns sql.ErrNoRows if
// there is no row.
func readValue[T any](ctx context.Context, d *DB, s *statement, args ...any) (value T, err error) {
	err = d.read.GetContext(ctx, &value, d.sql.Text(s), args...)
	return value, d.explainRead(ctx, err)
}

// readRows reads the rows of a query.
func readRows[T any](ctx context.Context, d *DB, s *statement, args ...any) (rows []T, err error) {
	err = d.read.SelectContext(ctx, &rows, d.sql.Text(s), args...)
	return rows, d.explainRead(ctx, err)
}

// readAs reads the rows of a query and converts each row.
func readAs[R, T any](ctx context.Context, d *DB, convert func(*R) T, s *statement, args ...any) ([]T, error) {
	rows, err := readRows[R](ctx, d, s, args...)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = convert(&rows[i])
	}

	return list, nil
}

// updateAs is update with a value. If run is called twice, it returns the value
// of the call whose transaction was committed.
func updateAs[T any](ctx context.Context, d *DB, to level, run func(*tx) (T, error)) (value T, err error) {
	err = d.update(ctx, to, func(t *tx) (err error) {
		value, err = run(t)
		return err
	})
	return value, err
}

// run is exec without the number of changed rows.
func (t *tx) run(s *statement, args ...any) error {
	_, err := t.exec(s, args...)
	return err
}
