package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// orders opens a database with a table of orders. remove closes the database
// and deletes it.
func orders(ctx context.Context) (r *runner.Runner, app *sql.DB, remove func()) {
	r, removeRunner := temp()
	app, err := runner.OpenDB(ctx, admin.Path(r))
	if err == nil {
		_, err = app.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, task INTEGER, cancelled INTEGER)`)
	}
	if err != nil {
		log.Fatal(err)
	}
	return r, app, func() {
		app.Close()
		removeRunner()
	}
}

// inTx calls a function in a transaction. It commits the transaction if the
// function returns nil, and rolls it back otherwise.
func inTx(ctx context.Context, app *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := app.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // a rollback after the commit has no effect
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// One transaction adds an order and all of its tasks. After an error the
// database has neither the order nor any of the tasks.
func ExampleRunner_EnqueueManyTx() {
	ctx := context.Background()
	r, app, remove := orders(ctx)
	defer remove()
	err := inTx(ctx, app, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders (item) VALUES ('pen')`); err != nil {
			return err
		}
		added, err := r.EnqueueManyTx(ctx, tx, SendEmail.With(Email{To: "ann@example.com"}), SendEmail.With(Email{To: "shop@example.com"}))
		for _, a := range added {
			fmt.Println("added task", a.ID)
		}
		return err
	})
	fmt.Println(err)
	r.Register(SendEmail.Handler(send))
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// added task 1
	// added task 2
	// <nil>
	// to ann@example.com
	// to shop@example.com
	// <nil>
}

// A customer cancels an order. The same transaction cancels the task of the
// order. If the transaction fails, the order keeps its task.
func ExampleRunner_CancelTx() {
	ctx := context.Background()
	r, app, remove := orders(ctx)
	defer remove()
	if err := inTx(ctx, app, func(tx *sql.Tx) error {
		task, err := r.EnqueueTx(ctx, tx, SendEmail.With(Email{To: "ann@example.com"}, jobs.In(time.Hour)))
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, item, task) VALUES (7, 'pen', ?)`, task.ID)
		}
		return err
	}); err != nil {
		log.Fatal(err)
	}
	err := inTx(ctx, app, func(tx *sql.Tx) error {
		var task int64
		if err := tx.QueryRowContext(ctx, `UPDATE orders SET cancelled = 1 WHERE id = 7 RETURNING task`).Scan(&task); err != nil {
			return err
		}
		done, err := r.CancelTx(ctx, tx, []int64{task}, runner.CancelOptions{Reason: "the customer has changed his mind"})
		if err == nil {
			fmt.Println(done[0].State)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// cancelled
	// <nil>
}

// A task has failed because an address was wrong. One transaction corrects the
// address and retries the task.
func ExampleRunner_RetryTx() {
	ctx := context.Background()
	r, app, remove := orders(ctx)
	defer remove()
	r.Register(SendEmail.Handler(func(context.Context, Email) error { return errors.New("no such address") }))
	task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "an@example.com"}, jobs.MaxAttempts(1)))
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	err = inTx(ctx, app, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders (item) VALUES ('the address of Ann is corrected')`); err != nil {
			return err
		}
		done, err := r.RetryTx(ctx, tx, []int64{task.ID}, runner.RetryOptions{})
		if err == nil {
			fmt.Println(done[0].State, done[0].Done)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// pending true
	// <nil>
}

// A transaction reads a task and decides by the state of the task what to do.
// The state cannot change before the commit, because the transaction holds the
// write lock.
func ExampleRunner_GetTx() {
	ctx := context.Background()
	r, app, remove := orders(ctx)
	defer remove()
	mail, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}, jobs.In(time.Hour)))
	if err != nil {
		log.Fatal(err)
	}
	err = inTx(ctx, app, func(tx *sql.Tx) error {
		task, err := r.GetTx(ctx, tx, mail.ID)
		if err != nil {
			return err
		}
		fmt.Println(task.State)
		if task.State != jobs.Scheduled {
			return errors.New("too late for a second item")
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO orders (item, task) VALUES ('ink', ?)`, task.ID)
		return err
	})
	fmt.Println(err)
	// Output:
	// scheduled
	// <nil>
}

// Each step writes to the same database. StepTx records the step in the
// transaction of this write. So after a crash no write is repeated and none is
// missing.
func ExampleStepTx() {
	ctx := context.Background()
	r, app, remove := orders(ctx)
	defer remove()
	r.Register(SendEmail.Handler(func(ctx context.Context, mail Email) error {
		var order int64
		err := inTx(ctx, app, func(tx *sql.Tx) (err error) {
			order, err = runner.StepTx(ctx, tx, "order", func(ctx context.Context) (id int64, err error) {
				fmt.Println("ordering a gift")
				err = tx.QueryRowContext(ctx, `INSERT INTO orders (item) VALUES ('gift') RETURNING id`).Scan(&id)
				return id, err
			})
			return err
		})
		if err != nil {
			return err
		}
		if task, _ := runner.TaskFromContext(ctx); task.Attempt == 1 {
			return jobs.RetryIn(0, errors.New("no connection"))
		}
		fmt.Println("to", mail.To, "about order", order)
		return nil
	}))
	if _, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"})); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// ordering a gift
	// to ann@example.com about order 1
	// <nil>
}

// A handler enqueues a task. It gets the Runner from its context.
func ExampleFromContext() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(send), MakeThumb.Handler(func(ctx context.Context, image Image) (Thumb, error) {
		thumb, err := resize(ctx, image)
		if r, ok := runner.FromContext(ctx); ok && err == nil {
			_, err = r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}))
		}
		return thumb, err
	}))
	if _, err := r.Enqueue(ctx, MakeThumb.With(Image{"cat.jpg"})); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// to ann@example.com
	// <nil>
}
