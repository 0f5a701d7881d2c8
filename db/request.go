package db

import (
	"errors"
	"fmt"
	"runtime"
)

// request is a write that waits for its turn, and somebody who waits for its answer.
type request struct {
	level level
	alone bool // a member of no group: what it reads can be read once only
	// shared: it cannot get in the way of others that are. A group of such has the lock of a server together with other ones.
	shared bool
	adds   bool // it does nothing but give tasks to the inserter, whose statements it shares with others
	run    func(*tx) error
	single func(*tx) error // the same by one statement, which is a transaction by itself; nil: there is none
	done   chan error      // buffered
	lead   chan struct{}   // buffered: it is this caller's turn to lead
}

// call runs the member. One that is alone calls code of its caller, which may panic or end its goroutine: that must be the caller's
// end, and not that of the leader, behind whom others wait. So it has a goroutine of its own.
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

// answer waits for the end of a write that somebody leads.
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

// errGoexit is on its way to a goroutine that is to end, as panicError is.
var errGoexit = errors.New("the goroutine ended")

// panicError is on its way to the goroutine that it belongs to.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }
