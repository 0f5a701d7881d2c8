package ops

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// The unit of a worker has the settings Type=notify and WatchdogSec=. The
// worker sends READY to systemd after its first claim, and then STATUS lines.
// When it begins to stop, it sends STOPPING, and asks for another minute with
// each report from then on. It sends WATCHDOG after each call of
// runner.WorkOptions.Liveness: its main loop has just accessed the database
// then, so it doesn't hang.

const (
	notifyEvery = 10 * time.Second       // interval of the reports if the unit has no watchdog
	extendBy    = time.Minute            // how much longer each report during a drain lets the worker stop
	sendTimeout = 100 * time.Millisecond // for a service manager that doesn't read; the report is lost then
)

// Notifier sends the state of the worker to systemd. A nil Notifier does
// nothing.
type Notifier struct {
	socket   *net.UnixAddr
	log      *slog.Logger
	Every    time.Duration // how often the worker should call Report
	ready    bool          // whether READY was sent
	stopping bool          // whether STOPPING was sent
}

// NewNotifier returns a Notifier that writes to a socket of systemd; nil if the
// socket has no name.
func NewNotifier(socket string, log *slog.Logger) *Notifier {
	if socket == "" {
		return nil
	}

	n := &Notifier{socket: &net.UnixAddr{Name: socket, Net: "unixgram"}, log: log, Every: notifyEvery}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("invalid watchdog settings", "err", err)
	}
	if watchdog > 0 {
		n.Every = min(n.Every, watchdog/3)
	}

	return n
}

// Report sends a state. The main loop of the worker calls it.
func (n *Notifier) Report(running int, draining bool) {
	lines := []string{daemon.SdNotifyWatchdog}
	if !n.ready {
		n.ready = true
		lines = append(lines, daemon.SdNotifyReady)
	}

	status := fmt.Sprintf("%d running", running)
	if draining {
		if !n.stopping {
			n.stopping = true
			lines = append(lines, daemon.SdNotifyStopping)
		}
		lines = append(lines, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
		status = "draining, " + status
	}

	n.send(append(lines, "STATUS="+status)...)
}

// Stop tells systemd that the worker is ending.
func (n *Notifier) Stop() {
	if n != nil {
		n.send(daemon.SdNotifyStopping)
	}
}

// send doesn't use daemon.SdNotify, which waits until the service manager
// reads.
func (n *Notifier) send(lines ...string) {
	conn, err := net.DialUnix("unixgram", nil, n.socket)
	if err == nil {
		defer func() { _ = conn.Close() }()
		_ = conn.SetWriteDeadline(time.Now().Add(sendTimeout))
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
	}
	if err != nil {
		n.log.Debug("cannot notify the service manager", "err", err)
	}
}
