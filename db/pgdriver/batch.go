package pgdriver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/runner/db/internal/engine"
)

// sendAll implements engine.Connectors.SendAll. It sends all statements in one
// message and then reads all results, so it waits for the server only once.
func sendAll(ctx context.Context, conn driver.Conn, list []engine.Statement) (_ driver.Rows, affected []int64, err error) {
	c := conn.(*stdlib.Conn).Conn()
	if c.IsClosed() {
		return nil, nil, driver.ErrBadConn
	}

	var batch pgx.Batch
	for _, s := range list {
		batch.Queue(s.Text, valuesOfArgs(s.Args)...)
	}

	results := c.SendBatch(ctx, &batch)
	defer func() {
		if e := results.Close(); err == nil {
			err = e
		}
	}()

	last := &rows{}
	for range list {
		result, err := results.Query()
		if err != nil {
			return nil, affected, err
		}

		r, err := readAll(result, c.TypeMap())
		if err != nil {
			return nil, affected, err
		}

		affected = append(affected, result.CommandTag().RowsAffected())
		if len(r.columns) > 0 {
			last = r
		}
	}

	return last, affected, nil
}

// readAll reads all rows of a result, and closes the result.
func readAll(result pgx.Rows, types *pgtype.Map) (*rows, error) {
	defer result.Close()

	r := &rows{}
	for result.Next() {
		values, err := valuesOf(result, types)
		if err != nil {
			return nil, err
		}
		r.values = append(r.values, values)
	}

	result.Close()
	r.columns = result.FieldDescriptions() // in some modes, pgx knows them only after the rows
	return r, result.Err()
}

// valuesOf returns the values of a row as drivers of database/sql do: each
// integer is an int64, and JSON is text.
func valuesOf(result pgx.Rows, types *pgtype.Map) ([]driver.Value, error) {
	columns := result.FieldDescriptions()
	values := make([]driver.Value, len(columns))
	for i, raw := range result.RawValues() {
		column := &columns[i]
		known, ok := types.TypeForOID(column.DataTypeOID)
		if !ok { // such as void, from a statement that takes a lock
			values[i] = string(raw)
			continue
		}
		var err error
		if values[i], err = known.Codec.DecodeDatabaseSQLValue(types, column.DataTypeOID, column.Format, raw); err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
	}

	return values, nil
}

// rows implements driver.Rows with rows that are already in memory.
type rows struct {
	columns []pgconn.FieldDescription
	values  [][]driver.Value
}

func (r *rows) Columns() []string {
	names := make([]string, len(r.columns))
	for i, c := range r.columns {
		names[i] = c.Name
	}
	return names
}

func (r *rows) Close() error { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.values) == 0 {
		return io.EOF
	}
	copy(dest, r.values[0])
	r.values = r.values[1:]
	return nil
}
