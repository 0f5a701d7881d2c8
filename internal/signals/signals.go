// Package signals handles the signals that end a command, drain a worker, or request a worker's status.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Received is the cause of a context that ended because of a signal.
type Received struct{ signal os.Signal }

func (s Received) Error() string { return s.signal.String() }

// Interrupt reports whether the signal is INT, which ^C sends.
func (s Received) Interrupt() bool { return s.signal == os.Interrupt }

// Status returns the exit status after the signal, as shells define it.
func (s Received) Status() int {
	if n, ok := s.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// Catch sends signals to the returned channel, so that they do not end the process. The function stop restores the normal behaviour. If the
// process already ignores a signal, Catch does not catch it. A process ignores HUP under nohup, and INT in the background of a script.
func Catch(signals ...os.Signal) (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// Until returns a context that ends when the process receives INT, TERM or HUP. The cause is then a Received. The second signal ends the
// process.
func Until(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	caught, release := Catch(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-caught:
			release()
			cancel(Received{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { release(); cancel(nil) }
}
