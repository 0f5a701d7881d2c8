// Package systemd tells systemd about the state of a worker, with the protocol of sd_notify. It also installs the unit of a worker.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"example.com/runner/runner"
)

// The unit of a worker has the settings Type=notify and WatchdogSec=. The worker
// sends READY to systemd after its first claim, and then STATUS lines. When it
// begins to stop, it sends STOPPING, and asks for another minute with each
// report from then on. It sends WATCHDOG after each call of
// runner.Options.Liveness: its main loop has just accessed the database then, so
// it does not hang.

const (
	notifyEvery = 10 * time.Second // interval of the reports if the unit has no watchdog
	extendBy    = time.Minute      // how much longer each report during a drain lets the worker stop
)

// Notifier sends the state of the worker to systemd. A nil Notifier does nothing.
type Notifier struct {
	log     *slog.Logger
	Every   time.Duration        // how often the worker should call Report
	reports chan runner.Liveness // latest state, if it is not sent yet; the channel has space for one state
}

// New returns a Notifier that writes to a socket of systemd. It returns nil if the name of the socket is empty.
func New(socket string, log *slog.Logger) *Notifier {
	if socket == "" {
		return nil
	}
	n := &Notifier{log: log, Every: notifyEvery, reports: make(chan runner.Liveness, 1)}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("invalid watchdog settings", "err", err)
	}
	if watchdog > 0 {
		n.Every = min(n.Every, watchdog/3)
	}
	return n
}

// Report stores the latest state for sending. It replaces an earlier state that has not been sent. It does not block, because the main loop
// of the worker calls it.
func (n *Notifier) Report(p runner.Liveness) {
	select {
	case <-n.reports:
	default:
	}
	n.reports <- p
}

// Start sends the states that Report stores, until the caller calls stop. The function "stop" also tells systemd that the worker is ending.
func (n *Notifier) Start() (stop func()) {
	if n == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sender sync.WaitGroup
	sender.Go(func() { n.run(ctx) })
	return func() {
		cancel()
		sender.Wait()
		n.send(daemon.SdNotifyStopping)
	}
}

func (n *Notifier) run(ctx context.Context) {
	ready, stopping := false, false
	for {
		var p runner.Liveness
		select {
		case <-ctx.Done():
			return
		case p = <-n.reports:
		}

		lines := []string{daemon.SdNotifyWatchdog}
		if !ready {
			ready = true
			lines = append(lines, daemon.SdNotifyReady)
		}
		status := fmt.Sprintf("%d running", p.Running)
		if p.Draining {
			if !stopping {
				stopping = true
				lines = append(lines, daemon.SdNotifyStopping)
			}
			lines = append(lines, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
			status = "draining, " + status
		}
		n.send(append(lines, "STATUS="+status)...)
	}
}

func (n *Notifier) send(lines ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		n.log.Debug("cannot notify the service manager", "err", err)
	}
}
