package postgres_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

// A transaction writes the row of a program and its task, so neither exists
// without the other. The handle uses the connections of a pool of pgx.
func Example_transaction() {
	order := func(ctx context.Context, r *runner.Runner, db *sql.DB, item string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `INSERT INTO app.orders (item) VALUES ($1)`, item); err != nil {
			return err
		}
		if _, err := r.EnqueueTx(ctx, tx, count.With(1)); err != nil {
			return err
		}
		return tx.Commit()
	}
	ctx := context.Background()
	r, err := runner.Open(ctx, "postgres://user@host/app", runner.Options{Engine: postgres.Engine()})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	pool, err := pgxpool.New(ctx, "postgres://user@host/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := order(ctx, r, stdlib.OpenDBFromPool(pool), "pen"); err != nil {
		log.Fatal(err)
	}
}
