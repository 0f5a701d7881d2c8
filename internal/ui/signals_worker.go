package ui

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// abortWithin is how long a worker may take to give back its tasks after a
// second TERM or INT. Then the process exits.
const abortWithin = 900 * time.Millisecond

// HandleWorker handles a worker's signals. After the first TERM or INT the
// returned context ends, so no further task starts. The second one also kills
// the running commands. On a terminal HUP stops the worker, too: it ends when
// its terminal closes.
func HandleWorker(ctx context.Context, r *runner.Runner, log *slog.Logger, terminal bool) (context.Context, func()) {
	ctx, drain := context.WithCancel(ctx)
	// A closed stdout or stderr must not end the worker. SIGPIPE is caught and
	// not ignored, because commands would inherit that.
	incoming, release := Catch(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	over := make(chan struct{})
	var listener sync.WaitGroup
	listener.Go(func() {
		for {
			var s os.Signal
			select {
			case s = <-incoming:
			case <-over:
				return
			}

			switch {
			case s == syscall.SIGPIPE:
			case s == syscall.SIGHUP && !terminal:
				log.Info("hangup", "note", "nothing to reload: settings are in the database")
			case ctx.Err() == nil:
				drain()
			default:
				log.Warn("stopping now")
				admin.Abort(r) // kill the commands
				time.AfterFunc(abortWithin, func() {
					log.Error("cannot give back tasks in time: another worker takes them over when their leases end")
					os.Exit(1) // a write may be waiting for the lock of another process, and only an exit ends that wait
				})
			}
		}
	})

	return ctx, func() {
		release()
		close(over)
		listener.Wait()
		drain()
	}
}
