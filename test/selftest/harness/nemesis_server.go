package harness

import (
	"context"
	"errors"
	"time"
)

// serverFaults are the faults for a database on a server.
var serverFaults = append([]fault{
	{"cut_commit", 12, (*nemesis).cutCommit},
	{"cut_host", 6, (*nemesis).cutHost},
	{"partition", 5, (*nemesis).partition},
	{"end_connection", 4, (*nemesis).endConnection},
}, faults...)

// cutCommit cuts a connection after the next request has reached the server,
// but before the reply. The request is usually a commit.
func (n *nemesis) cutCommit() bool {
	n.proxies[n.random.IntN(len(n.proxies))].cutNextReply()
	return true
}

// cutHost cuts all connections of a simulated host.
func (n *nemesis) cutHost() bool {
	n.proxies[n.random.IntN(len(n.proxies))].cut()
	return true
}

// partition cuts a simulated host off from the server for a while. The
// connections of the host stay half open. If one of them holds the write lock,
// it keeps the lock.
func (n *nemesis) partition() bool {
	p, d := n.proxies[n.random.IntN(len(n.proxies))], n.stopDuration()
	resumeTraffic, ok := p.stall()
	if !ok {
		return false
	}

	cut := n.random.IntN(2) == 0
	n.notes.add(opLocked, 0, 0, "")
	n.background.Go(func() {
		n.sleep(d)
		if cut {
			p.cut()
		}
		resumeTraffic()
		n.notes.add(opUnlocked, 0, 0, "")
	})
	return true
}

func (n *nemesis) endConnection() bool {
	n.db.endConnection(n.random.IntN(1000))
	return true
}

// endServer kills the primary server, or only its first process. Then it either
// starts the same server again a moment later, or promotes the standby.
// Restarts and promotions alternate, if the standby is ready.
func (n *nemesis) endServer() {
	kill, name := n.cluster.server().Kill, "kill_server"
	if n.random.IntN(2) == 0 {
		kill = n.cluster.server().Crash
	}

	again := func() error {
		n.sleep(time.Duration(n.random.Int64N(int64(Lease))))
		return n.cluster.server().Run(context.Background())
	}
	if n.counts["kill_server"] > n.counts["promote"] && n.cluster.hasStandby() {
		name, again = "promote", n.cluster.promote
	}

	n.notes.add(opLocked, 0, 0, "")
	defer n.notes.add(opUnlocked, 0, 0, "")

	n.notes.add(opDown, 0, 0, "")
	if err := errors.Join(kill(), again()); err != nil {
		panic("selftest: " + err.Error())
	}

	n.notes.add(opUp, 0, 0, "")
	n.counts[name]++
}
