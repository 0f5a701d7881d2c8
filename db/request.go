package db

import "context"

// request is a write of one caller, who waits for its result. The leader of a
// group runs the writes of several callers in one transaction; see commit.go.
type request struct {
	ctx    context.Context // if it ends before the write has begun, the caller gives up
	level  level
	alone  bool // whether the caller runs it in a transaction of its own, because run must not be called twice
	shared bool // on a server, groups of shared requests hold the write lock together
	adds   bool // whether run only passes tasks to the inserter, which adds those of several requests together
	run    func(*tx) error
	single func(*tx) error // run as a single statement without a transaction; may be nil
	done   chan error      // result of the write; buffered
	lead   chan struct{}   // receives a value when the caller becomes the next leader; buffered
}

// level says which failures a write survives once it has returned.
type level int

const (
	normal level = iota // survives the death of any process
	full                // survives a power failure; with Options.Flash, only if the power fails some time after the write
	synced              // survives a power failure, even with Options.Flash
)

// call runs the request. The code of a caller that runs alone may panic or end
// its goroutine; then call rolls the transaction back.
func (r *request) call(w *writer, t *tx) error {
	returned := false
	defer func() {
		if !returned {
			w.rollback(t)
		}
	}()

	err := r.run(t)
	returned = true
	return err
}
