package process

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	birthPatience = 100 * time.Millisecond // how long the end of an unknown child waits for the births under way, one of which it may be
	buryMost      = 100                    // ends between two looks at what they have left
)

// reap waits for children until none is left after the end of the worker. It takes all that have ended before it looks at what they have
// left: a look for each falls behind processes that fork all the time.
func (g *guardian) reap() {
	for {
		g.mu.Lock()
		births := g.births
		g.mu.Unlock()
		pid, err := peek(0)
		switch err {
		case nil:
			for n := 0; err == nil && pid != 0 && n < buryMost; n++ {
				g.bury(pid)
				pid, err = peek(unix.WNOHANG)
			}
			g.look()
		case unix.ECHILD:
			if g.none(births) {
				g.finish()
				return
			}
		}
	}
}

// none is called when there was no child, after so many births. It returns true when there will be none, and false when there may
// be one again.
func (g *guardian) none(births int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.births == births {
		if g.stopping && len(g.bearing) == 0 {
			return true
		}
		g.change.Wait()
	}
	return false
}

func (g *guardian) finish() { g.once.Do(func() { close(g.over) }) }

func (g *guardian) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
}

// peek returns a child that has ended, and leaves it a zombie, so that its number stays its own; 0 with WNOHANG: none has.
func peek(flags int) (int, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|flags, nil)
		if err == nil {
			// x/sys has no name for si_pid: it comes first after three ints, aligned as a pointer.
			return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 8+unsafe.Sizeof(uintptr(0))))), nil
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}

// bury waits for a child that has ended, and takes note of it. A look follows.
func (g *guardian) bury(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaders[pid] == nil {
		g.awaitBirths(pid)
	}
	w := g.leaders[pid]
	if w != nil {
		_ = signalGroup(pid, unix.SIGKILL) // while the zombie holds the number of its group
	}
	session, _ := unix.Getsid(pid)
	d := &death{}
	if n, err := unix.Wait4(pid, &d.status, unix.WNOHANG, &d.usage); n != pid || err != nil {
		return // a start that failed, waited for by ForkExec
	}
	switch {
	case w != nil:
		g.ended(w, d)
	default:
		for b := range g.bearing {
			b.early[pid] = d
		}
	}
	orphan := g.orphans[pid]
	delete(g.orphans, pid)
	delete(g.strangers, pid)
	if w == nil && d.status.Signaled() && d.status.Signal() == unix.SIGKILL {
		if orphan == nil && g.ending[g.sessions[session]] {
			orphan = g.sessions[session] // fell with its group
		}
		if orphan != nil && orphan.by == bySelf {
			orphan.leftOver++
		}
	}
}

// awaitBirths waits for the births that are under way, until one of them was pid's. It gives up the mutex meanwhile.
func (g *guardian) awaitBirths(pid int) {
	timer := time.NewTimer(birthPatience)
	defer timer.Stop()
	for b := range maps.Clone(g.bearing) {
		g.mu.Unlock()
		select {
		case <-b.over:
		case <-timer.C: // it hangs in exec
			g.mu.Lock()
			return
		}
		g.mu.Lock()
		if g.leaders[pid] != nil {
			return
		}
	}
}

// ended takes note of the end of a leader.
func (g *guardian) ended(w *ward, d *death) {
	delete(g.leaders, w.pid)
	w.death = d
	g.ending[w] = true
}

// report tells the worker that an attempt is over: no process of it is left.
func (g *guardian) report(w *ward) {
	w.timer.Stop()
	delete(g.wards, w.Key)
	delete(g.ending, w)
	if g.sessions[w.pid] == w {
		delete(g.sessions, w.pid)
	}
	_ = g.lock.setRecord(w.slot, Record{})
	g.slots[w.slot] = false
	exit := &Exit{Code: w.death.status.ExitStatus(), LeftOver: w.leftOver,
		User: time.Duration(w.death.usage.Utime.Nano()), System: time.Duration(w.death.usage.Stime.Nano())}
	if w.death.status.Signaled() {
		exit.Signal = int(w.death.status.Signal())
	}
	g.send(reply{Op: opExited, Key: w.Key, By: w.by, Exit: exit})
}

// killWard kills a command; before its birth it dooms it. What survives its leader is killed when that is waited for.
func (g *guardian) killWard(w *ward) {
	w.doomed = true
	if g.leaders[w.pid] != w {
		return
	}
	_ = signalGroup(w.pid, unix.SIGKILL) // of another user: not ours to kill
	g.owners(childrenOf(os.Getpid()), func(kid int, of *ward) {
		if of == w {
			_ = unix.Kill(kid, unix.SIGKILL)
		}
	})
}

// killAll kills everything, after the end of the worker. Each end of a child calls it again, for what that has left; so it ends
// when there is no child, or none but those of other users, which cannot be killed and are not waited for.
func (g *guardian) killAll() {
	alive, denied := 0, 0
	hit := func(err error) {
		switch err {
		case nil:
			alive++
		case unix.EPERM:
			denied++
		}
	}
	for pid := range g.leaders {
		_ = signalGroup(pid, unix.SIGKILL)
		hit(unix.Kill(pid, unix.SIGKILL))
	}
	for _, thread := range append(slices.Clone(g.forkers), os.Getpid()) {
		for _, kid := range childrenOf(thread) {
			if g.leaders[kid] == nil {
				hit(unix.Kill(kid, unix.SIGKILL))
			}
		}
	}
	if alive == 0 && denied > 0 && len(g.bearing) == 0 {
		_, _ = os.Stderr.WriteString("guardian: processes of another user are left running\n")
		g.finish()
	}
}

// childrenOf returns the children of a thread of this process, zombies included.
func childrenOf(thread int) []int {
	text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(thread) + "/children")
	if errors.Is(err, fs.ErrNotExist) && thread == os.Getpid() {
		return allChildren()
	}
	var pids []int
	for field := range bytes.FieldsSeq(text) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// allChildren is for kernels that do not tell the children of a thread.
func allChildren() []int {
	var pids []int
	for _, pid := range processes() {
		if field := statOf(pid); len(field) > 1 {
			if parent, _ := strconv.Atoi(string(field[1])); parent == os.Getpid() {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// statOf returns the fields of a process's stat from the state on; nil if it is gone.
func statOf(pid int) [][]byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may hold anything
}
