package db

import "context"

// request is a write of one caller, who waits for its result. A goroutine, the leader of a group, runs the writes of several callers in one
// transaction; see commit.go.
type request struct {
	ctx   context.Context // context of the caller; if it ends before the write has begun, the caller gives up
	level level
	alone bool // whether the caller itself runs the request in a transaction of its own, because "run" must not be called twice
	// Whether the request can run at the same time as other requests whose field "shared" is true. On a server, several groups can hold the
	// write lock together if this field is true in all their requests.
	shared bool
	adds   bool // whether the function "run" only passes tasks to the inserter, which adds the tasks of several requests in one statement
	run    func(*tx) error
	single func(*tx) error // does the same as "run" by a single statement without a transaction; may be nil
	done   chan error      // result of the write; buffered
	lead   chan struct{}   // receives a value when the caller becomes the leader of the next group; buffered
}

// call runs the request. The function run of a request with the field alone is code of its caller, who leads this request: it may panic or
// end its goroutine. call then rolls the transaction back.
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
