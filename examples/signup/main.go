// Signup is a web application that sends a welcome mail to each new user. One
// transaction writes the row of the user and the task that sends the mail, so
// neither exists without the other. The same process sends the mail when the
// mail server is available. If the process is killed, the next process sends
// the mail.
//
//	signup -db app.db -listen 127.0.0.1:8000 -smtp 127.0.0.1:25
//	curl -d email=ann@example.com http://127.0.0.1:8000/signup
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/mail"
	"net/smtp"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Letter is the argument of a welcome mail: the address of the user.
type Letter struct{ To string }

var welcome = jobs.Define[Letter]("welcome.send", jobs.MaxAttempts(20), jobs.Timeout(time.Minute), jobs.Queue("mail"))

// app is the web application. It uses one database file.
type app struct {
	db     *sql.DB
	runner *runner.Runner
	smtp   string
	send   func(ctx context.Context, to string, text []byte) error
	retry  jobs.Backoff
	log    *slog.Logger
}

func open(ctx context.Context, path, smtp string, log *slog.Logger) (*app, error) {
	r, err := runner.Open(ctx, path, runner.Options{Log: log})
	if err != nil {
		return nil, err
	}

	db, err := runner.OpenDB(ctx, path)
	if err != nil {
		_ = r.Close()
		return nil, err
	}

	a, err := newApp(ctx, r, db, smtp, log)
	if err != nil {
		_ = db.Close()
		_ = r.Close()
	}

	return a, err
}

// newApp creates the table of the program and registers its job. A test passes
// the runner and the database handle that package runnertest has made.
func newApp(ctx context.Context, r *runner.Runner, db *sql.DB, server string, log *slog.Logger) (*app, error) {
	_, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY,
		email TEXT NOT NULL UNIQUE, welcome INTEGER) STRICT`)
	a := &app{db: db, runner: r, smtp: server, retry: jobs.Backoff{Delay: 10 * time.Second}, log: log}
	a.send = func(_ context.Context, to string, text []byte) error {
		return smtp.SendMail(server, nil, "hello@example.com", []string{to}, text)
	}
	r.Register(welcome.Handler(a.sendWelcome))
	return a, err
}

func (a *app) close() {
	_ = a.db.Close()
	_ = a.runner.Close()
}

var errTaken = errors.New("this address is registered already")

// signUp adds a user and enqueues the welcome mail in one transaction. It
// needn't notify the worker, because the worker notices each commit to the
// file.
func (a *app) signUp(ctx context.Context, address string) (task int64, err error) {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit

	added, err := tx.ExecContext(ctx, `INSERT INTO users (email) VALUES (?) ON CONFLICT DO NOTHING`, address)
	if err != nil {
		return 0, err
	}
	if n, err := added.RowsAffected(); err != nil || n == 0 {
		return 0, errors.Join(err, errTaken)
	}

	letter, err := a.runner.EnqueueTx(ctx, tx, welcome.With(Letter{address}, jobs.Label(address), jobs.WithBackoff(a.retry)))
	if err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE users SET welcome = ? WHERE email = ?`, letter.ID, address); err != nil {
		return 0, err
	}

	return letter.ID, tx.Commit()
}

// sendWelcome sends a letter to the mail server. If the process is killed after
// the letter is sent and before the task is completed, the next attempt sends
// the letter again with the same Message-ID. Mail programs then show only one
// letter.
func (a *app) sendWelcome(ctx context.Context, l Letter) error {
	task, _ := runner.TaskFromContext(ctx)
	text := fmt.Sprintf("From: Example <hello@example.com>\r\nTo: <%s>\r\nSubject: Welcome\r\nMessage-ID: "+
		"<welcome-%d@example.com>\r\nDate: %s\r\n\r\nIt is good that you are here.\r\n",
		l.To, task.ID, task.CreatedAt.Format(time.RFC1123Z))
	runner.Logger(ctx).Info("sending", "server", a.smtp)
	return a.send(ctx, l.To, []byte(text))
}

func (a *app) serveSignUp(w http.ResponseWriter, r *http.Request) {
	address, err := mail.ParseAddress(r.PostFormValue("email"))
	if err != nil || address.Name != "" {
		http.Error(w, "this is no mail address", http.StatusBadRequest)
		return
	}

	task, err := a.signUp(r.Context(), address.Address)
	switch {
	case errors.Is(err, errTaken):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		a.log.Error("sign-up failed", "err", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "welcome; your letter is task %d\n", task)
	}
}

// run serves the pages on a listener and sends letters until ctx ends.
func (a *app) run(ctx context.Context, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	routes := http.NewServeMux()
	routes.HandleFunc("POST /signup", a.serveSignUp)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		stop() // the process is useless without its pages, so stop the worker, too
	}()
	// When ctx ends, Work lets running tasks continue for up to
	// WorkOptions.Grace, and then returns.
	err := a.runner.Work(ctx, runner.WorkOptions{Concurrency: 4})
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()

	err = errors.Join(err, server.Shutdown(end))
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}

	return err
}

func main() {
	path := flag.String("db", "app.db", "database `file`")
	listen := flag.String("listen", "127.0.0.1:8000", "`address` of the pages")
	smtp := flag.String("smtp", "127.0.0.1:25", "`address` of the mail server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *path, *listen, *smtp)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "signup:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, path, listen, smtp string) error {
	a, err := open(ctx, path, smtp, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer a.close()

	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}

	return a.run(ctx, listener)
}
