package process

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Orphans are what attempts leave behind: the children of the guardian's main thread.

const (
	opaqueFor = time.Second // for an exec, beside much other load
	lookAgain = time.Millisecond
)

// settle kills what attempts have left behind whose leaders have ended, and reports those of which nothing is left. It is called
// after every end of a child: each may have handed its own children to the guardian.
func (g *guardian) settle() {
	if g.stopping {
		g.killAll()
		return
	}
	if len(g.ending) == 0 && len(g.wards) > 0 {
		return
	}
	kids := childrenOf(os.Getpid())
	left := map[*ward]bool{}
	unsure := false
	kill := func(kid int, w *ward) {
		switch err := unix.Kill(kid, unix.SIGKILL); {
		case err == unix.EPERM: // of another user: not waited for
			g.foreign(kid)
		case err == nil && w != nil:
			g.orphans[kid] = w
			left[w] = true
		}
	}
	living := make([]int, 0, len(kids))
	only := g.only()
	for _, kid := range kids {
		switch {
		case !running(kid): // what it had started may have come after the list: look again when it is buried
			unsure = true
		case only != nil:
			kill(kid, only)
		default:
			living = append(living, kid)
		}
	}
	opaque, gone := g.owners(living, func(kid int, w *ward) {
		if w == nil || g.ending[w] {
			kill(kid, w)
		}
	})
	newly := g.newlyOpaque(opaque)
	if newly && len(g.ending) > 0 {
		g.lookSoon()
	}
	unsure = unsure || gone || newly
	for w := range g.ending {
		if !left[w] && !unsure {
			g.report(w)
		}
	}
	if len(g.wards) == 0 { // nobody's, by any evidence: their attempt is over in any case
		for _, kid := range kids {
			_ = unix.Kill(kid, unix.SIGKILL)
		}
	}
}

// lookSoon looks again in a moment: once for all that ask for it.
func (g *guardian) lookSoon() {
	if g.soon {
		return
	}
	g.soon = true
	time.AfterFunc(lookAgain, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.soon = false
		g.settle()
	})
}

// newlyOpaque takes note of the orphans that show no environment, and says whether one has done so for a short time only: in exec. One may
// have been started without any.
func (g *guardian) newlyOpaque(pids []int) bool {
	now, since := monotonic(), map[int]int64{}
	newly := false
	for _, pid := range pids {
		if since[pid] = now; g.opaque[pid] != 0 {
			since[pid] = g.opaque[pid]
		}
		newly = newly || now-since[pid] < int64(opaqueFor)
	}
	g.opaque = since
	return newly
}

// foreign tells once of a process that is left running because it belongs to another user.
func (g *guardian) foreign(pid int) {
	if !g.strangers[pid] {
		g.strangers[pid] = true
		_, _ = os.Stderr.WriteString("guardian: process " + strconv.Itoa(pid) + " of another user has outlived its command\n")
	}
}

// only returns the one attempt there is, if its leader has ended: every orphan is its, or nobody's any more.
func (g *guardian) only() *ward {
	if len(g.wards) == 1 {
		for w := range g.ending {
			return w
		}
	}
	return nil
}

// owners tells which attempt each of some orphans belongs to: nil for one that is over. It returns those that nothing tells of, and whether
// some have ended meanwhile. An orphan in exec shows no environment for a moment: it is asked again after the others, which may be forking
// all the time.
func (g *guardian) owners(pids []int, is func(pid int, w *ward)) (opaque []int, gone bool) {
	for try := range 4 {
		if try > 0 {
			time.Sleep(100 * time.Microsecond)
		}
		var again []int
		for _, pid := range pids {
			if session, err := unix.Getsid(pid); err == nil {
				if w := g.sessions[session]; w != nil {
					is(pid, w)
					continue
				}
			}
			environ := environOf(pid)
			if worker, key := tags(environ); worker == g.worker {
				is(pid, g.wards[key])
			} else if len(environ) == 0 && running(pid) {
				again = append(again, pid)
			} else if len(environ) == 0 {
				gone = true
			}
		}
		if pids = again; len(pids) == 0 {
			break
		}
	}
	return pids, gone
}
