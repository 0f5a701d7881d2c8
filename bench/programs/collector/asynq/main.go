// This program is the edge collector with asynq; see README.md of
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

	"github.com/hibiken/asynq"
	_ "modernc.org/sqlite"
)

// Reading is one value of the sensor.
type Reading struct {
	Seq   int64
	Value float64
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

	redis := asynq.RedisClientOpt{Network: "unix", Addr: os.Getenv("REDIS_SOCKET")}
	client := asynq.NewClient(redis)
	defer client.Close()

	server := asynq.NewServer(redis, asynq.Config{Concurrency: 10, RetryDelayFunc: func(int, error, *asynq.Task) time.Duration {
		return time.Second
	}})
	mux := asynq.NewServeMux()
	mux.HandleFunc("reading.upload", func(ctx context.Context, task *asynq.Task) error {
		return post(ctx, url, json.RawMessage(task.Payload()))
	})
	if err := server.Start(mux); err != nil {
		return err
	}

	go sample(ctx, func(reading Reading) error {
		// A crash between the INSERT and the enqueue loses the upload, because
		// no transaction covers both SQLite and Redis.
		if _, err := db.ExecContext(ctx, "INSERT INTO readings VALUES (?, ?)", reading.Seq, reading.Value); err != nil {
			return err
		}

		text, err := json.Marshal(reading)
		if err != nil {
			return err
		}

		_, err = client.EnqueueContext(ctx, asynq.NewTask("reading.upload", text, asynq.MaxRetry(1_000_000), asynq.Timeout(10*time.Second)))
		return err
	})
	<-ctx.Done()
	server.Shutdown()
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
