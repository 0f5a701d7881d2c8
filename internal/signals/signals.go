// Package signals handles the signals that end a command, drain a worker, or ask what a worker is doing.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Received is why a context ended: somebody wants this process to end.
type Received struct{ signal os.Signal }

func (s Received) Error() string { return s.signal.String() }

// Status is the exit status after the signal, as shells have it.
func (s Received) Status() int {
	if n, ok := s.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// Catch hands signals to the returned channel instead of letting them end the process, until stop. One that was ignored when
// the process started (nohup, the background of a script) stays ignored.
func Catch(signals ...os.Signal) (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// Until returns a context that INT, TERM or HUP end with the cause signalled. The next of them ends the process.
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
