package db

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// request is a write of one caller, who waits for its result. A goroutine, the leader of a group, runs the writes of several callers in one
// transaction; see commit.go.
type request struct {
	ctx   context.Context // context of the caller; if it ends before the write has begun, the caller gives up
	level level
	alone bool // whether the request needs a transaction of its own, because the function "run" must not be called twice
	// Whether the request can run at the same time as other requests whose field "shared" is true. On a server, several groups can hold the
	// write lock together if this field is true in all their requests.
	shared bool
	adds   bool // whether the function "run" only passes tasks to the inserter, which adds the tasks of several requests in one statement
	run    func(*tx) error
	single func(*tx) error // does the same as "run" by a single statement without a transaction; may be nil
	done   chan error      // result of the write; buffered
	lead   chan struct{}   // receives a value when the caller becomes the leader of the next group; buffered
}

// call runs the request. If alone is set, the request runs code of its caller. That code may panic or end its goroutine, but the leader
// must go on, because other callers wait for it. So call runs such a request in a goroutine of its own.
func (r *request) call(t *tx) error {
	if !r.alone {
		return r.run(t)
	}
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if p := recover(); p != nil {
				err = &panicError{p}
			}
			done <- err
		}()
		err = r.run(t)
	}()
	return <-done
}

// answer waits for the end of the write and returns its error.
func (r *request) answer() error { return repanic(<-r.done) }

func repanic(err error) error {
	if p, ok := errors.AsType[*panicError](err); ok {
		panic(p.value)
	}
	if errors.Is(err, errGoexit) {
		runtime.Goexit()
	}
	return err
}

// errGoexit reports that a write called runtime.Goexit. repanic calls runtime.Goexit in the goroutine of the caller.
var errGoexit = errors.New("the goroutine ended")

// panicError carries the value of a panic in a write. repanic panics with it in the goroutine of the caller.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }
