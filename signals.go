package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalled is why a context ended: somebody wants this process to end.
type signalled struct{ signal os.Signal }

func (s signalled) Error() string { return s.signal.String() }

// status is the exit status after the signal, as shells have it.
func (s signalled) status() int {
	if n, ok := s.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// catch hands signals to the returned channel instead of letting them end the process, until stop. One that was ignored when
// the process started (nohup, the background of a script) stays ignored.
func catch(signals ...os.Signal) (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// untilSignal returns a context that INT, TERM or HUP end with the cause signalled. The next of them ends the process.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	caught, release := catch(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-caught:
			release()
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { release(); cancel(nil) }
}
