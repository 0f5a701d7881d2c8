package postgres_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"

	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

// A transaction of pgx writes the row of a program and its task, so neither
// exists without the other.
func ExampleTx() {
	order := func(ctx context.Context, r *runner.Runner, conn *pgx.Conn, item string) error {
		return pgx.BeginFunc(ctx, conn, func(native pgx.Tx) error {
			if _, err := native.Exec(ctx, `INSERT INTO app.orders (item) VALUES ($1)`, item); err != nil {
				return err
			}
			tx, release, err := postgres.Tx(ctx, native)
			if err != nil {
				return err
			}
			defer release()
			_, err = r.EnqueueTx(ctx, tx, count.With(1))
			return err
		})
	}
	ctx := context.Background()
	r, err := runner.Open(ctx, "postgres://user@host/app", runner.Options{Engine: postgres.Engine()})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	conn, err := pgx.Connect(ctx, "postgres://user@host/app")
	if err != nil {
		log.Fatal(err)
	}
	if err := order(ctx, r, conn, "pen"); err != nil {
		log.Fatal(err)
	}
}
