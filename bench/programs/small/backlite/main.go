// This program is the smallest with backlite; see README.md of bench/programs.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mikestefanello/backlite"
	_ "modernc.org/sqlite"
)

type greet struct{ Name string }

func (greet) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "greet", MaxAttempts: 3, Timeout: time.Minute}
}

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

	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: 1, ReleaseAfter: time.Minute, CleanupInterval: time.Hour})
	if err != nil {
		return err
	}
	if err := client.Install(); err != nil {
		return err
	}

	client.Register(backlite.NewQueue(func(_ context.Context, in greet) error {
		fmt.Println("hello", in.Name)
		return nil
	}))
	if _, err := client.Add(greet{"world"}).Ctx(ctx).Save(); err != nil {
		return err
	}

	client.Start(ctx)
	<-ctx.Done()
	client.Stop(context.WithoutCancel(ctx))
	return nil
}
