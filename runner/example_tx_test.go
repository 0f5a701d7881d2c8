package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// One transaction writes a row of the application and enqueues a task, so
// neither exists without the other. Workers notice the commit without a call.
func ExampleRunner_EnqueueTx() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	app, err := runner.OpenDB(ctx, admin.Path(r)) // the tables of the application are in the same file
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	if _, err := app.ExecContext(ctx, `CREATE TABLE users (email TEXT NOT NULL UNIQUE)`); err != nil {
		log.Fatal(err)
	}
	signUp := func(email string) error {
		tx, err := app.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := r.EnqueueTx(ctx, tx, SendEmail.With(Email{To: email})); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO users (email) VALUES (?)`, email); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(signUp("ann@example.com") == nil, signUp("ann@example.com") == nil) // the second sign-up fails because the address exists
	r.Register(SendEmail.Handler(send))
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// true false
	// to ann@example.com
	// <nil>
}

// One transaction commits the effect of a task and finishes the task. So the
// effect happens exactly once, even if a process dies.
func ExampleFinishTx() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	app, err := runner.OpenDB(ctx, admin.Path(r))
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	if _, err := app.ExecContext(ctx, `CREATE TABLE sent (email TEXT)`); err != nil {
		log.Fatal(err)
	}
	r.Register(SendEmail.Handler(func(ctx context.Context, mail Email) error {
		tx, err := app.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `INSERT INTO sent VALUES (?)`, mail.To); err != nil {
			return err
		}
		if err := runner.FinishTx(ctx, tx, nil); err != nil { // the task has no result
			return err // jobs.ErrLost means that another worker owns the task now; the deferred rollback undoes the effect
		}
		return tx.Commit()
	}))
	task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	var sent int
	err = app.QueryRowContext(ctx, `SELECT count(*) FROM sent`).Scan(&sent)
	fmt.Println(sent, err)
	task, err = r.Get(ctx, task.ID)
	fmt.Println(task.State, err)
	// Output:
	// 1 <nil>
	// completed <nil>
}

// OpenDB opens a database for an application. Its transactions can read first
// and write later, while workers write to the same file.
func ExampleOpenDB() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	app, err := runner.OpenDB(ctx, filepath.Join(dir, "stock.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	if _, err := app.ExecContext(ctx, `CREATE TABLE stock (item TEXT, n INTEGER); INSERT INTO stock VALUES ('pen', 2)`); err != nil {
		log.Fatal(err)
	}
	take := func(item string) error {
		tx, err := app.BeginTx(ctx, nil) // the transaction takes the write lock, so no other process changes the stock before the commit
		if err != nil {
			return err
		}
		defer tx.Rollback()
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT n FROM stock WHERE item = ?`, item).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return errors.New("out of stock")
		}
		if _, err := tx.ExecContext(ctx, `UPDATE stock SET n = ? WHERE item = ?`, n-1, item); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(take("pen"), take("pen"), take("pen"))
	// Output: <nil> <nil> out of stock
}

// New uses the database of the application. The names of runner's tables have a
// prefix, so the tables of the application stay as they are.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	app, err := runner.OpenDB(ctx, filepath.Join(dir, "todo.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer app.Close()
	// This table belongs to the application; runner does not touch it.
	if _, err := app.ExecContext(ctx, `CREATE TABLE tasks (title TEXT)`); err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(ctx, app, runner.Options{Prefix: "jobs_"})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"})); err != nil {
		log.Fatal(err)
	}
	var theirs, ours int
	err = app.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM jobs_tasks)`).Scan(&theirs, &ours)
	fmt.Println(theirs, ours, err)
	// Output: 0 1 <nil>
}
