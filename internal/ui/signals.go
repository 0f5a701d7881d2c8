package ui

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Received is the cause of a context that a signal has ended.
type Received struct{ signal os.Signal }

func (s Received) Error() string { return s.signal.String() }

// Interrupt reports whether the signal is INT, which ^C sends.
func (s Received) Interrupt() bool { return s.signal == os.Interrupt }

// Status returns the exit status of a process that the signal has ended, as in
// shells.
func (s Received) Status() int {
	if n, ok := s.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// Interrupted returns the exit status of the signal that has ended ctx, if err
// is what came of it. Otherwise it returns err.
func Interrupted(ctx context.Context, err error) error {
	if s, ok := errors.AsType[Received](context.Cause(ctx)); err != nil && ok {
		return ExitStatus(s.Status())
	}
	return err
}

// Catch sends signals to the returned channel instead of ending the process;
// stop restores the normal behaviour. A signal that the process already ignores
// stays ignored, such as HUP under nohup, and INT in a script's background
// process.
func Catch(signals ...os.Signal) (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 4)
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// twiceWithin is how long a second signal counts as the first one: timeout
// signals its command and then the whole process group.
const twiceWithin = 100 * time.Millisecond

// Until returns a context that ends when the process receives INT, TERM or HUP.
// The cause is then a Received. A second signal ends the process.
func Until(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	caught, release := Catch(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-caught:
			cancel(Received{s})
			time.Sleep(twiceWithin)
			release()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { release(); cancel(nil) }
}
