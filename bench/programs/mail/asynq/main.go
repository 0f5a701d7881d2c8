// This program is the outbox mail service with asynq; see README.md of
// bench/programs.
package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	_ "modernc.org/sqlite"
)

// Mail is the welcome mail of a new user.
type Mail struct{ To string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, url string) error {
	db, err := open(ctx, filepath.Join(dir, "mail.db"), `CREATE TABLE IF NOT EXISTS users (address TEXT PRIMARY KEY)`)
	if err != nil {
		return err
	}
	defer db.Close()

	redis := asynq.RedisClientOpt{Network: "unix", Addr: os.Getenv("REDIS_SOCKET")}
	client := asynq.NewClient(redis)
	defer client.Close()

	server := asynq.NewServer(redis, asynq.Config{Concurrency: 10, RetryDelayFunc: func(int, error, *asynq.Task) time.Duration {
		return 200 * time.Millisecond
	}})
	mux := asynq.NewServeMux()
	mux.HandleFunc("mail.welcome", func(ctx context.Context, task *asynq.Task) error {
		return post(ctx, url, json.RawMessage(task.Payload()))
	})
	if err := server.Start(mux); err != nil {
		return err
	}

	go signups(func(to string) error {
		// A crash between the INSERT and the enqueue loses the mail, because no
		// transaction covers both SQLite and Redis.
		if _, err := db.ExecContext(ctx, "INSERT INTO users VALUES (?)", to); err != nil {
			return err
		}

		text, err := json.Marshal(Mail{to})
		if err != nil {
			return err
		}

		_, err = client.EnqueueContext(ctx, asynq.NewTask("mail.welcome", text, asynq.MaxRetry(20), asynq.Timeout(10*time.Second)))
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

// signups calls add with each address that it reads from stdin.
func signups(add func(to string) error) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := add(lines.Text()); err != nil {
			log.Print(err)
		}
	}
}
