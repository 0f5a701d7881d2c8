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

	"example.com/runner/db"
)

// together sends statements in one message and waits for one.
func together(ctx context.Context, conn driver.Conn, list []db.Statement) (_ driver.Rows, affected []int64, err error) {
	c := conn.(*stdlib.Conn).Conn()
	if c.IsClosed() {
		return nil, nil, driver.ErrBadConn
	}
	var batch pgx.Batch
	for _, s := range list {
		args := make([]any, len(s.Args))
		for i, arg := range s.Args {
			args[i] = arg.Value
		}
		batch.Queue(s.Text, args...)
	}
	results := c.SendBatch(ctx, &batch)
	defer func() {
		if e := results.Close(); err == nil {
			err = e
		}
	}()
	var last *rows
	for range list {
		answer, err := results.Query()
		if err != nil {
			return nil, affected, err
		}
		r := &rows{columns: answer.FieldDescriptions()}
		for answer.Next() {
			values, err := valuesOf(answer, c.TypeMap())
			if err != nil {
				answer.Close()
				return nil, affected, err
			}
			r.values = append(r.values, values)
		}
		answer.Close()
		if err := answer.Err(); err != nil {
			return nil, affected, err
		}
		affected = append(affected, answer.CommandTag().RowsAffected())
		if len(r.columns) > 0 {
			last = r
		}
	}
	if last == nil {
		last = &rows{}
	}
	return last, affected, nil
}

// valuesOf returns the values of a row as package database/sql has them: every integer is an int64, and JSON is its text.
func valuesOf(answer pgx.Rows, types *pgtype.Map) ([]driver.Value, error) {
	columns := answer.FieldDescriptions()
	values := make([]driver.Value, len(columns))
	for i, raw := range answer.RawValues() {
		column := &columns[i]
		known, ok := types.TypeForOID(column.DataTypeOID)
		if !ok { // void is what the statement that takes the lock returns
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

// rows are those of an answer that was read.
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
