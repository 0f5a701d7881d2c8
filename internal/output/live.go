package output

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/follow"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// endMost is how long Live waits for output after an attempt has ended.
const endMost = 5 * time.Second

// Live receives the whole output of one task from the workers that run it, and prints it. The limit for stored output does not apply. If a
// worker cannot connect to this process, it only stores the output; Follow then prints the stored part. A nil *Live receives nothing.
type Live struct {
	to       *LogPrinter
	follower *follow.Follower

	mu       sync.Mutex             // protects the LogPrinter, and the fields below
	attempts map[int64]*liveAttempt // attempts whose output a worker sends or has sent, by generation
	err      error                  // error of writing to stdout or stderr
}

// liveAttempt is an attempt whose output a worker sends to this process, or has sent.
type liveAttempt struct {
	ended    chan struct{} // closed when the worker sends no more output
	complete bool          // whether every byte has arrived; set before the channel "ended" is closed
	dropped  bool          // set by the method "end"; output that arrives later is ignored
}

// NewLive creates a socket to which workers can send output. It returns nil if it cannot create a socket.
func NewLive(r *runner.Runner, to *LogPrinter) *Live {
	follower, err := follow.Listen(admin.Directory(r))
	if err != nil {
		return nil
	}
	return &Live{to: to, follower: follower, attempts: map[int64]*liveAttempt{}}
}

// Bind renames the socket so that workers that run the task find it. Call Bind before a worker can start the task.
func (l *Live) Bind(id int64) error {
	if l == nil {
		return nil
	}
	return l.follower.Bind(id)
}

// Serve starts to print the output that workers send about task t.
func (l *Live) Serve(t jobs.Task) {
	if l == nil {
		return
	}
	l.follower.Serve(func(generation int64) (receive func(string, []byte) error, end func(bool)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		a := &liveAttempt{ended: make(chan struct{})}
		l.attempts[generation] = a
		receive = func(stream string, data []byte) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			switch {
			case a.dropped:
				return errDropped
			case l.err == nil:
				l.err = errors.Join(l.to.piece(t, jobs.Chunk{Stream: stream, Data: data}, 0), l.to.P.Flush())
			}
			return l.err
		}
		return receive, func(complete bool) {
			a.complete = complete
			close(a.ended)
		}
	})
}

var errDropped = errors.New("the attempt is over")

// end waits until Live has received the rest of the output of an attempt that has ended. The caller must hold l.mu.
func (l *Live) end(ctx context.Context, sent *liveAttempt, a jobs.Attempt) error {
	lost := a.Reason == jobs.ReasonLost // if lost, do not wait: the worker may be suspended and never send the rest of the output
	if !lost {
		timer := time.NewTimer(endMost)
		defer timer.Stop()
		l.mu.Unlock()
		select {
		case <-sent.ended:
		case <-timer.C:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
	select {
	case <-sent.ended:
		l.to.missing = l.to.missing || !sent.complete && !lost
	default:
		l.to.missing = l.to.missing || !lost
	}
	sent.dropped = true
	return l.err
}

// attempt returns the attempt with this generation, or nil if no worker has connected to send its output. The caller must hold l.mu.
func (l *Live) attempt(generation int64) *liveAttempt {
	if l == nil {
		return nil
	}
	return l.attempts[generation]
}

// Close ends the connections and removes the socket.
func (l *Live) Close() {
	if l != nil {
		l.follower.Close()
	}
}

func (l *Live) lock() {
	if l != nil {
		l.mu.Lock()
	}
}

func (l *Live) unlock() {
	if l != nil {
		l.mu.Unlock()
	}
}

// FollowTasks prints the output of tasks until all of them have finished or were deleted. If there is only one task and it has not started
// yet, FollowTasks prints its whole output, even if it exceeds the limit for stored output.
func FollowTasks(ctx context.Context, r *runner.Runner, ids []int64, to *LogPrinter) error {
	tasks := map[int64]*Cursor{}
	for _, id := range ids {
		tasks[id] = &Cursor{Range: Range{Lines: -1}}
	}
	if len(ids) == 1 {
		live := NewLive(r, to)
		defer live.Close()
		if live.Bind(ids[0]) == nil {
			live.Serve(jobs.Task{ID: ids[0]})
			tasks[ids[0]].Live = live
		}
	}
	if err := Follow(ctx, r, ids, tasks, to); err != nil {
		return err
	}
	return to.Finish()
}
