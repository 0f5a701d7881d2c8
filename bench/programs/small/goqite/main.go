// This program is the smallest with goqite; see README.md of bench/programs.
package main

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"
	_ "modernc.org/sqlite"
)

// schema is a copy of schema_sqlite.sql of goqite, as its README recommends.
//
//go:embed schema.sql
var schema string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "small.db")+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()

	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}

	queue := goqite.New(goqite.NewOpts{DB: db, Name: "jobs"})
	worker := jobs.NewRunner(jobs.NewRunnerOpts{Limit: 1, Queue: queue})
	worker.Register("greet", func(_ context.Context, name []byte) error {
		fmt.Println("hello", string(name))
		return nil
	})
	if _, err := jobs.Create(ctx, queue, "greet", goqite.Message{Body: []byte("world")}); err != nil {
		return err
	}

	worker.Start(ctx)
	return nil
}
