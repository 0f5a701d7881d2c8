// This program is the edge collector with runner; see README.md of
// bench/programs.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Reading is one value of the sensor.
type Reading struct {
	Seq   int64
	Value float64
}

var deliver = jobs.Define[Reading]("reading.upload", jobs.MaxAttempts(1_000_000), jobs.Timeout(10*time.Second),
	jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Second}))

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, url string) error {
	path := filepath.Join(dir, "edge.db")
	r, err := runner.Open(ctx, path, runner.Options{Sync: runner.SyncFlash})
	if err != nil {
		return err
	}
	defer r.Close()

	db, err := runner.OpenDB(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()

	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS readings (seq INTEGER PRIMARY KEY, value REAL NOT NULL)`); err != nil {
		return err
	}

	r.Register(deliver.Handler(func(ctx context.Context, in Reading) error { return post(ctx, url, in) }))
	go sample(ctx, func(reading Reading) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()

		if _, err := tx.ExecContext(ctx, "INSERT INTO readings VALUES (?, ?)", reading.Seq, reading.Value); err != nil {
			return err
		}
		if _, err := r.EnqueueTx(ctx, tx, deliver.With(reading)); err != nil {
			return err
		}
		return tx.Commit()
	})
	return r.Work(ctx, runner.WorkOptions{Concurrency: 10})
}

func post(ctx context.Context, url string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}

	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()

	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}

	return nil
}

// sample calls add once a second with a reading.
func sample(ctx context.Context, add func(Reading) error) {
	for tick := time.Tick(time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case at := <-tick:
			if err := add(Reading{at.UnixMilli(), 20 + rand.Float64()}); err != nil {
				log.Print(err)
			}
		}
	}
}
