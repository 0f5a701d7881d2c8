package db

import "context"

// readValue reads the one value of a query, or returns sql.ErrNoRows.
func readValue[T any](ctx context.Context, d *DB, text string, args ...any) (value T, err error) {
	err = d.read.GetContext(ctx, &value, text, args...)
	return value, explain(err, d.path)
}

// readRows reads the rows of a query.
func readRows[T any](ctx context.Context, d *DB, text string, args ...any) (rows []T, err error) {
	err = d.read.SelectContext(ctx, &rows, text, args...)
	return rows, explain(err, d.path)
}

// readAs reads the rows of a query and converts each.
func readAs[R, T any](ctx context.Context, d *DB, convert func(*R) T, text string, args ...any) ([]T, error) {
	rows, err := readRows[R](ctx, d, text, args...)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = convert(&rows[i])
	}
	return list, nil
}

// updateAs is update for a write that returns something: the answer of the run that was committed.
func updateAs[T any](ctx context.Context, d *DB, to level, run func(*tx) (T, error)) (value T, err error) {
	err = d.update(ctx, to, func(t *tx) (err error) {
		value, err = run(t)
		return err
	})
	return value, err
}

// run is exec for a statement that may change any number of rows.
func (t *tx) run(text string, args ...any) error {
	_, err := t.exec(text, args...)
	return err
}
