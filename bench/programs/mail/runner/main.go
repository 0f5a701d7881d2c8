// This program is the outbox mail service with runner; see README.md of
// bench/programs.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Mail is the welcome mail of a new user.
type Mail struct{ To string }

var deliver = jobs.Define[Mail]("mail.welcome", jobs.MaxAttempts(20), jobs.Timeout(10*time.Second),
	jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: 200 * time.Millisecond}))

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir, url string) error {
	path := filepath.Join(dir, "mail.db")
	r, err := runner.Open(ctx, path, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()

	db, err := runner.OpenDB(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()

	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS users (address TEXT PRIMARY KEY)`); err != nil {
		return err
	}

	r.Register(deliver.Handler(func(ctx context.Context, in Mail) error { return post(ctx, url, in) }))
	go signups(func(to string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()

		if _, err := tx.ExecContext(ctx, "INSERT INTO users VALUES (?)", to); err != nil {
			return err
		}
		if _, err := r.EnqueueTx(ctx, tx, deliver.With(Mail{to})); err != nil {
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

// signups calls add with each address that it reads from stdin.
func signups(add func(to string) error) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := add(lines.Text()); err != nil {
			log.Print(err)
		}
	}
}
