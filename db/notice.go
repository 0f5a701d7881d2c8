package db

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/runner/jobs"
)

// Who waits for something on a server is told by NOTIFY. It is not part of the transactions that are worth telling: a commit that
// notifies takes a lock of the whole server. So a goroutine sends it after them, one for all that were committed while it sent the last.
// A message that is lost, with the process or the connection, is found by the timer of whoever waits.

// notify tells all that listen on channel [1] that process [2] has committed something.
var notify = query(`SELECT pg_notify(?, ?)`)

const noticePatience = 2 * time.Second

// endsOnly follows the name of the process in a message that no worker needs: tasks have completed, or were claimed. If each such commit of a
// worker made the others look what there is, and their looking the next ones, they would do nothing else.
const endsOnly = " ends"

// noticeEvery is the least time between two notices of a process: each wakes every other one, which looks what there is.
const noticeEvery = 5 * time.Millisecond

type noticer struct {
	self string // of this process's own messages
	mu   sync.Mutex
	due  bool
	news bool // for workers, too
	busy bool
	idle sync.Cond
}

func (n *noticer) start() {
	n.self = rand.Text()
	n.idle.L = &n.mu
}

// Channel is where commits are told.
func (s *server) channel() string { return "runner_" + s.Schema }

// tell says that something was committed; news: that there may be something to do for workers. It does not wait.
func (d *DB) tell(news bool) {
	n := &d.server.noticer
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due, n.news = true, n.news || news
	if n.busy {
		return
	}
	n.busy = true
	go func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for n.due {
			message := n.self
			if !n.news {
				message += endsOnly
			}
			n.due, n.news = false, false
			n.mu.Unlock()
			d.notice(message)
			n.mu.Lock()
		}
		n.busy = false
		n.idle.Broadcast()
	}()
}

// notice sends a message, and leaves a pause after it. A connection that was idle may have been cut unnoticed: then another one is tried.
func (d *DB) notice(message string) {
	ctx, cancel := context.WithTimeout(context.Background(), noticePatience)
	defer cancel()
	for closing := false; ; {
		_, err := d.read.ExecContext(ctx, d.sql.Text(notify), d.server.channel(), message)
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
func (n *noticer) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.busy {
		n.idle.Wait()
	}
}

// listenPause is how long to wait before listening again after the connection broke; meanwhile each such pause ends with a notice.
const listenPause = time.Second

// listen calls told when another process, or a program with plain SQL, has committed something, or may have; news: something for workers.
func (d *DB) listen(ctx context.Context, told func(news bool)) {
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
			_ = d.server.Listen(ctx, d.server.channel(), func(message string) {
				if sender, ends := strings.CutSuffix(message, endsOnly); sender != d.server.noticer.self {
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

// Told returns nil when a message of this process has come back to it from the server, and an error of kind ErrInvalid when none came for so
// long: something between them, such as a pooler that gives each transaction another connection, takes LISTEN away. Files need no messages.
func (d *DB) Told(ctx context.Context, patience time.Duration) error {
	if d.server == nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	mine, came := rand.Text(), false
	err := d.server.Listen(waiting, d.server.channel(), func(message string) {
		switch message {
		case "": // it listens
			_, _ = d.read.ExecContext(waiting, d.sql.Text(notify), d.server.channel(), mine) // what becomes of it is waited for
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
		return explain(err, d.path)
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("no message comes back from %s in %v", d.path, patience), Hint: "the address of the server itself, or a pool in session mode",
		Why: []string{"a pooler in between takes LISTEN away: workers find tasks late, by looking"}}
}
