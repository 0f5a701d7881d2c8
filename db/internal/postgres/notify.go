package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// Processes learn of commits on a server by NOTIFY. The NOTIFY is not part of the committed transaction, because a commit that notifies
// takes a lock of the whole server. So a goroutine sends the notification later. It sends one notification for all commits since the last
// one. A notification is lost if the process or the connection ends. So each waiting process also reads the database from time to time.

// selectNotify sends the message [2] to all processes that listen on channel [1].
var selectNotify = sqltext.Query(`SELECT pg_notify(?, ?)`)

const notifyTimeout = 2 * time.Second

// endsOnly ends a message about commits that give workers nothing to do: tasks have completed, or were claimed. If each such commit woke
// all other workers, their own commits would wake all workers again, and workers would do nothing else.
const endsOnly = " ends"

// notifyEvery is the shortest time between two notifications of a process. Each notification makes every other process read the database.
const notifyEvery = 5 * time.Millisecond

type notifier struct {
	self    string // identifies this process's own messages
	mu      sync.Mutex
	pending bool // a notification is not sent yet
	wakeups bool // that notification is for workers, too
	busy    bool // a goroutine is sending
	idle    sync.Cond
}

func (n *notifier) start() {
	n.self = rand.Text()
	n.idle.L = &n.mu
}

// channel returns the name of the channel for notifications of commits.
func (s *Server) channel() string { return "runner_" + s.Schema }

// Notify notifies other processes of a commit. wakeups reports whether workers may have something to do. Notify does not wait.
func (d *Server) Notify(wakeups bool) {
	n := &d.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending, n.wakeups = true, n.wakeups || wakeups
	if n.busy {
		return
	}
	n.busy = true
	go func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for n.pending {
			message := n.self
			if !n.wakeups {
				message += endsOnly
			}
			n.pending, n.wakeups = false, false
			n.mu.Unlock()
			d.sendNotification(message)
			n.mu.Lock()
		}
		n.busy = false
		n.idle.Broadcast()
	}()
}

// sendNotification sends a message, and pauses for notifyEvery after it. An idle connection may have been lost without an error. So it
// tries again on another one after an error.
func (d *Server) sendNotification(message string) {
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	for closing := false; ; {
		_, err := d.read.ExecContext(ctx, d.sql.Text(selectNotify), d.channel(), message)
		select {
		case <-time.After(notifyEvery):
		case <-d.quit:
			closing = true
		}
		if err == nil || closing || ctx.Err() != nil { // give up: waiting processes also read the database from time to time
			return
		}
	}
}

// stop waits until all notifications are sent.
func (n *notifier) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.busy {
		n.idle.Wait()
	}
}

// listenPause is the pause before listen connects again after a lost connection. At the end of each pause listen calls notify, because
// it may have missed notifications.
const listenPause = time.Second

// Watch implements engine.Shared. Other processes, and programs with plain SQL, notify of their commits. Watch ignores the pace, because
// notifyEvery limits the rate already.
func (d *Server) Watch(ctx context.Context, _ time.Duration, notify func(wakeups bool)) error {
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
					notify(!ends)
				}
			})
			select {
			case <-ctx.Done():
			case <-time.After(listenPause):
				notify(true)
			}
		}
	})
	return nil
}

// WatchSlowly does nothing, for the same reason.
func (*Server) WatchSlowly(bool) {}

// CheckNotifications implements engine.Shared. LISTEN does not work if, for instance, a pooler gives each transaction another connection.
func (d *Server) CheckNotifications(ctx context.Context, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	mine, came := rand.Text(), false
	err := d.Listen(waiting, d.channel(), func(message string) {
		switch message {
		case "": // Listen listens now
			_, _ = d.read.ExecContext(waiting, d.sql.Text(selectNotify), d.channel(), mine) // after an error no message comes back
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
		Why:  []string{"a pooler in between breaks LISTEN: workers find tasks late, by polling"}}
}
