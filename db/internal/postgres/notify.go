package postgres

import (
	"context"
	"strings"
	"sync"
	"time"

	"example.com/runner/db/internal/sqltext"
)

// Processes learn of commits on a server by NOTIFY. A commit with a NOTIFY
// would take a lock on the whole server. So a goroutine sends it later, one for
// all commits since the last one. It is lost if the process or the connection
// ends, so each waiting process also reads the database from time to time.

// selectNotify sends the message [2] on channel [1].
var selectNotify = sqltext.Query(`SELECT pg_notify(?, ?)`)

const notifyTimeout = 2 * time.Second

// endsOnly ends a message about commits that have only completed or claimed
// tasks, which don't wake workers. If they did, the woken workers' own commits
// would wake all workers again, without end.
const endsOnly = " ends"

// notifyEvery is the shortest time between two notifications of a process. Each
// makes every other process read the database.
const notifyEvery = 5 * time.Millisecond

type notifier struct {
	self    string // begins the messages of this process
	sending sync.WaitGroup

	mu      sync.Mutex
	pending bool // whether a notification must be sent
	wakeups bool // whether it must also wake workers, and not only those who wait for the end of a task
	busy    bool // whether a goroutine is sending
}

// channel returns the name of the channel for notifications of commits.
func (s *Server) channel() string { return "runner_" + s.Schema }

// Notify notifies other processes of a commit, without waiting. wakeups says
// whether workers may have something to do.
func (s *Server) Notify(wakeups bool) {
	n := &s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()

	n.pending, n.wakeups = true, n.wakeups || wakeups
	if !n.busy {
		n.busy = true
		n.sending.Go(s.sendNotifications)
	}
}

func (s *Server) sendNotifications() {
	n := &s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()

	for n.pending {
		message := n.self
		if !n.wakeups {
			message += endsOnly
		}
		n.pending, n.wakeups = false, false
		n.mu.Unlock()
		s.sendNotification(message)
		n.mu.Lock()
	}

	n.busy = false
}

// sendNotification sends a message, and then pauses for notifyEvery. After an
// error it tries again on another connection, because an idle one may have been
// lost unnoticed. A lost notification only causes a delay: waiting processes
// also read the database from time to time.
func (s *Server) sendNotification(message string) {
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()

	for {
		_, err := s.read.ExecContext(ctx, s.sql.Text(selectNotify), s.channel(), message)
		select {
		case <-time.After(notifyEvery):
		case <-s.life.Done():
			return
		}

		if err == nil || ctx.Err() != nil {
			return
		}
	}
}

// listenPause is the pause before Watch connects again after a lost connection.
// At its end Watch calls notify, because notifications may have been lost.
const listenPause = time.Second

// Watch implements engine.Shared. It listens for the notifications of other
// processes, also those that use plain SQL. It needs no interval, because each
// process waits for notifyEvery between two notifications.
func (s *Server) Watch(ctx context.Context, _ time.Duration, notify func(wakeups bool)) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	s.watches.Go(func() {
		defer cancel()
		defer stop()

		for ctx.Err() == nil {
			_ = s.Listen(ctx, s.channel(), func(message string) {
				if sender, ends := strings.CutSuffix(message, endsOnly); sender != s.notifier.self {
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
}

// WatchSlowly does nothing, for the same reason.
func (*Server) WatchSlowly(bool) {}
