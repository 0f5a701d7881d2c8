// This program is the edge collector with backlite; see README.md of
// bench/programs.
package main

import (
	"bytes"
	"context"
	"database/sql"
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

	"github.com/mikestefanello/backlite"
	_ "modernc.org/sqlite"
)

// Reading is one value of the sensor.
type Reading struct {
	Seq   int64
	Value float64
}

// Config sets the options of the queue of this type.
func (Reading) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "reading.upload", MaxAttempts: 1_000_000, Backoff: time.Second, Timeout: 10 * time.Second}
}

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

	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: 10, ReleaseAfter: time.Minute, CleanupInterval: time.Hour})
	if err != nil {
		return err
	}
	if err := client.Install(); err != nil {
		return err
	}

	client.Register(backlite.NewQueue(func(ctx context.Context, in Reading) error { return post(ctx, url, in) }))
	client.Start(ctx)
	go sample(ctx, func(reading Reading) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()

		if _, err := tx.ExecContext(ctx, "INSERT INTO readings VALUES (?, ?)", reading.Seq, reading.Value); err != nil {
			return err
		}
		if _, err := client.Add(reading).Ctx(ctx).Tx(tx).Save(); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}

		client.Notify()
		return nil
	})
	<-ctx.Done()
	client.Stop(context.WithoutCancel(ctx))
	return nil
}

func open(ctx context.Context, path, schema string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
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
