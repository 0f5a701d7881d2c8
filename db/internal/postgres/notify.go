package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// Who waits for something on a server is told by NOTIFY. It is not part of the transactions that are worth telling: a commit that
// notifies takes a lock of the whole server. So a goroutine sends it after them, one for all that were committed while it sent the last.
// A message that is lost, with the process or the connection, is found by the timer of whoever waits.

// notify tells all that listen on channel [1] that process [2] has committed something.
var notify = sqltext.Query(`SELECT pg_notify(?, ?)`)

const noticePatience = 2 * time.Second

// endsOnly follows the name of the process in a message that no worker needs: tasks have completed, or were claimed. If each such
// commit of a worker made the others look what there is, and their looking the next ones, they would do nothing else.
const endsOnly = " ends"

// noticeEvery is the least time between two notices of a process: each wakes every other one, which looks what there is.
const noticeEvery = 5 * time.Millisecond

type notifier struct {
	self    string // of this process's own messages
	mu      sync.Mutex
	due     bool
	wakeups bool // for workers, too
	busy    bool
	idle    sync.Cond
}

func (n *notifier) start() {
	n.self = rand.Text()
	n.idle.L = &n.mu
}

// channel is where commits are told.
func (s *Server) channel() string { return "runner_" + s.Schema }

// Notify tells other processes that something was committed. wakeups reports whether workers may have something to do. It does not wait.
func (d *Server) Notify(wakeups bool) {
	n := &d.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due, n.wakeups = true, n.wakeups || wakeups
	if n.busy {
		return
	}
	n.busy = true
	go func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for n.due {
			message := n.self
			if !n.wakeups {
				message += endsOnly
			}
			n.due, n.wakeups = false, false
			n.mu.Unlock()
			d.notice(message)
			n.mu.Lock()
		}
		n.busy = false
		n.idle.Broadcast()
	}()
}

// notice sends a message, and leaves a pause after it. A connection that was idle may have been cut unnoticed: then another one is tried.
func (d *Server) notice(message string) {
	ctx, cancel := context.WithTimeout(context.Background(), noticePatience)
	defer cancel()
	for closing := false; ; {
		_, err := d.read.ExecContext(ctx, d.sql.Text(notify), d.channel(), message)
		select {
		case <-time.After(noticeEvery):
		case <-d.quit:
			closing = true
		}
		if err == nil || closing || ctx.Err() != nil { // whoever waits looks now and then
			return
		}
	}
}

// stop waits until all was told.
func (n *notifier) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.busy {
		n.idle.Wait()
	}
}

// listenPause is how long to wait before listening again after the connection broke; meanwhile each such pause ends with a notice.
const listenPause = time.Second

// listen calls told when another process, or a program with plain SQL, has committed something, or may have. wakeups reports
// whether workers may have something to do.
func (d *Server) listen(ctx context.Context, told func(wakeups bool)) {
	ctx, cancel := context.WithCancel(ctx)
	d.watches.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-d.quit:
		}
	})
	d.watches.Go(func() {
		for ctx.Err() == nil {
			_ = d.Listen(ctx, d.channel(), func(message string) {
				if sender, ends := strings.CutSuffix(message, endsOnly); sender != d.notifier.self {
					told(!ends)
				}
			})
			select {
			case <-ctx.Done():
			case <-time.After(listenPause):
				told(true)
			}
		}
	})
}

// CheckNotifications returns nil when a message of this process has come back to it from the server, and an error of kind
// ErrInvalid when none came for so long: something between them, such as a pooler that gives each transaction another connection,
// takes LISTEN away.
func (d *Server) CheckNotifications(ctx context.Context, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	mine, came := rand.Text(), false
	err := d.Listen(waiting, d.channel(), func(message string) {
		switch message {
		case "": // it listens
			_, _ = d.read.ExecContext(waiting, d.sql.Text(notify), d.channel(), mine) // what becomes of it is waited for
		case mine:
			came = true
			cancel()
		}
	})
	switch {
	case came:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case waiting.Err() == nil:
		return d.Explain(err)
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("no message comes back from %s in %v", d.Name(), patience),
		Hint: "the address of the server itself, or a pool in session mode",
		Why:  []string{"a pooler in between takes LISTEN away: workers find tasks late, by looking"}}
}

// Watch calls told when another process has committed something.
func (d *Server) Watch(ctx context.Context, _ bool, told func(wakeups bool)) error {
	d.listen(ctx, told)
	return nil
}

// WatchSlowly does nothing: notices have a pace of their own.
func (*Server) WatchSlowly(bool) {}

// revisions counts notices.
type revisions struct {
	told atomic.Int64
	stop context.CancelFunc
}

// Revisions listens until it is closed.
func (d *Server) Revisions(ctx context.Context) (engine.Revisions, error) {
	r := &revisions{}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	d.listen(ctx, func(bool) { r.told.Add(1) })
	return r, nil
}

func (r *revisions) Now(context.Context) (int64, error) { return r.told.Load(), nil }
func (r *revisions) Close()                             { r.stop() }
