// This program is the edge collector with River; see README.md of
// bench/programs.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"
)

// Reading is one value of the sensor.
type Reading struct {
	Seq   int64
	Value float64
}

// Kind names the job.
func (Reading) Kind() string { return "reading.upload" }

type deliverer struct {
	river.WorkerDefaults[Reading]
	url string
}

func (d *deliverer) Work(ctx context.Context, job *river.Job[Reading]) error {
	return post(ctx, d.url, job.Args)
}

func (d *deliverer) NextRetry(*river.Job[Reading]) time.Time { return time.Now().Add(time.Second) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, url string) error {
	db, err := open(ctx, filepath.Join(dir, "edge.db"),
		`CREATE TABLE IF NOT EXISTS readings (seq INTEGER PRIMARY KEY, value REAL NOT NULL)`)
	if err != nil {
		return err
	}
	defer db.Close()

	migrator, err := rivermigrate.New(riversqlite.New(db), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}

	workers := river.NewWorkers()
	river.AddWorker(workers, &deliverer{url: url})
	client, err := river.NewClient(riversqlite.New(db), &river.Config{Workers: workers, MaxAttempts: math.MaxInt16,
		JobTimeout: 10 * time.Second, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}}})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}

	go sample(ctx, func(reading Reading) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()

		if _, err := tx.ExecContext(ctx, "INSERT INTO readings VALUES (?, ?)", reading.Seq, reading.Value); err != nil {
			return err
		}
		if _, err := client.InsertTx(ctx, tx, reading, nil); err != nil {
			return err
		}
		return tx.Commit()
	})
	<-ctx.Done()
	<-client.Stopped()
	return nil
}

func open(ctx context.Context, path, schema string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}

	db.SetMaxOpenConns(1) // the documentation of the driver requires one connection
	_, err = db.ExecContext(ctx, schema)
	return db, err
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
