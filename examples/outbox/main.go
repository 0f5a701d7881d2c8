// Outbox runs on a small machine between sensors and a server that isn't always
// available. It keeps the readings in one SQLite file and delivers them when
// the server is available. It delivers the readings of each device in order,
// each of them once.
//
//	outbox -db outbox.db record DEVICE VALUE     keep a reading
//	outbox -db outbox.db deliver URL             deliver all readings, old and new, until a signal
//
// The example shows:
//   - a lane, which runs the deliveries of each device one at a time and in
//     order; a later delivery waits for the retries of a failed one
//   - a sequence number, which the program increases in the same transaction
//     that enqueues the task
//   - an idempotency key, without which HTTP could deliver a reading more than
//     once
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Reading is one value of a device. Seq counts the readings of the device, from
// 1.
type Reading struct {
	Device string    `json:"device"`
	Seq    int64     `json:"seq"`
	Value  float64   `json:"value"`
	At     time.Time `json:"at"`
}

// key is the name of the reading in requests to the server. It is the same in
// all attempts, so the server can detect a reading that it has already stored.
func (r Reading) key() string { return r.Device + "/" + strconv.FormatInt(r.Seq, 10) }

// deliver is the job that delivers a reading. Its limits are so high that a
// task practically never fails: a reading waits until the server is available
// again, and the later readings of its device wait, too. The limit MaxLosses
// counts attempts that ended because the machine lost power or the process was
// killed.
var deliver = jobs.Define[Reading]("reading.deliver", jobs.MaxAttempts(1_000_000), jobs.MaxLosses(1_000_000), jobs.Timeout(10*time.Second))

// outbox uses one file in two ways: as the database of a runner, and as the
// program's own database.
type outbox struct {
	runner *runner.Runner
	db     *sql.DB
	client *http.Client
	retry  jobs.Backoff
}

func open(ctx context.Context, path string, backoff time.Duration, log *slog.Logger) (*outbox, error) {
	r, err := runner.Open(ctx, path, runner.Options{Log: log})
	if err != nil {
		return nil, err
	}

	db, err := runner.OpenDB(ctx, path)
	if err != nil {
		_ = r.Close()
		return nil, err
	}

	o, err := newOutbox(ctx, r, db, backoff)
	if err != nil {
		_ = db.Close()
		_ = r.Close()
	}

	return o, err
}

// newOutbox creates the table of the program if it is missing. A test passes
// the runner and the database handle that package runnertest has made.
func newOutbox(ctx context.Context, r *runner.Runner, db *sql.DB, backoff time.Duration) (*outbox, error) {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS devices (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT`)
	retry := jobs.Backoff{Strategy: jobs.BackoffExponential, Delay: backoff, Max: 100 * backoff}
	return &outbox{runner: r, db: db, client: http.DefaultClient, retry: retry}, err
}

func (o *outbox) close() {
	_ = o.db.Close()
	_ = o.runner.Close()
}

// record gives a reading the next sequence number, and enqueues the task that
// delivers the reading, in one transaction. When record returns without an
// error, the reading is on the disk.
func (o *outbox) record(ctx context.Context, device string, value float64) (Reading, error) {
	r := Reading{Device: device, Value: value, At: time.Now().UTC()}
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { _ = tx.Rollback() }() // Rollback does nothing after the commit

	err = tx.QueryRowContext(ctx, `INSERT INTO devices (name, seq) VALUES (?, 1)
		ON CONFLICT (name) DO UPDATE SET seq = seq + 1 RETURNING seq`, device).Scan(&r.Seq)
	if err != nil {
		return r, err
	}
	if _, err := o.runner.EnqueueTx(ctx, tx, deliver.With(r, jobs.Lane(device), jobs.Label(r.key()),
		jobs.WithBackoff(o.retry))); err != nil {
		return r, err
	}

	return r, tx.Commit()
}

// deliverTo registers the function that delivers readings to a URL.
func (o *outbox) deliverTo(to string) {
	o.runner.Register(deliver.Handler(func(ctx context.Context, r Reading) error { return o.post(ctx, to, r) }))
}

// post makes one attempt to deliver a reading. It returns an error if the
// server doesn't answer with a 2xx status; runner then tries again.
func (o *outbox) post(ctx context.Context, to string, r Reading) error {
	body, err := json.Marshal(r)
	if err != nil {
		return jobs.Cancel(err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return jobs.Cancel(err)
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", r.key())
	answer, err := o.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()

	text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
	}

	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("outbox", flag.ContinueOnError)
	path := flags.String("db", "outbox.db", "database `file`")
	backoff := flags.Duration("backoff", time.Second, "after the first failed delivery; then it grows to a hundred times that")
	if err := flags.Parse(args); err != nil {
		return err
	}

	o, err := open(ctx, *path, *backoff, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer o.close()

	switch {
	case flags.Arg(0) == "record" && flags.NArg() == 3:
		value, err := strconv.ParseFloat(flags.Arg(2), 64)
		if err != nil {
			return err
		}
		r, err := o.record(ctx, flags.Arg(1), value)
		if err == nil {
			fmt.Println(r.key())
		}
		return err
	case flags.Arg(0) == "deliver" && flags.NArg() == 2:
		o.deliverTo(flags.Arg(1))
		return o.runner.Work(ctx, runner.WorkOptions{Concurrency: 8})
	}

	return fmt.Errorf("usage: outbox [-db FILE] record DEVICE VALUE | deliver URL")
}
