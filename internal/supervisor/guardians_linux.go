package supervisor

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxFailures = 3           // guardians in a row that may handle no command before the worker ends
	maxIdle     = time.Minute // after this, an idle guardian is closed; one always stays
)

// Guardians are the guardian processes of a worker. It starts a new one when a
// command has to start and none is idle, because that takes some milliseconds,
// and keeps it for later commands.
//
// If the first guardian doesn't start, the worker ends, because it can run no
// command. If a later one doesn't start for lack of resources, the command is
// refused and the worker goes on. A guardian that ends before it has handled a
// command counts as a failure; after maxFailures in a row the worker ends.
type Guardians struct {
	GuardiansOptions
	first sync.Once // only one caller starts the first guardian

	mu       sync.Mutex        // also guards the fields of the guardians
	slots    map[int]*Guardian // by the place of their record in the lock file; nil while one starts
	idle     []*Guardian       // in the order in which they became idle; a command gets the last one
	failures int               // guardians in a row that have handled no command
	worked   bool              // whether a guardian has ever started
	over     bool              // whether no more guardians may start
}

// NewGuardians returns Guardians. It doesn't start a process yet.
func NewGuardians(o GuardiansOptions) *Guardians {
	return &Guardians{GuardiansOptions: o, slots: map[int]*Guardian{}}
}

// Prepare starts the first guardian, unless an earlier call has done so. If
// that fails, it calls Fail.
func (p *Guardians) Prepare() {
	p.first.Do(func() {
		g, err := p.add()
		if err != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.put(g)
	})
}

// take returns an idle guardian, or starts one.
func (p *Guardians) take() (*Guardian, error) {
	p.Prepare()

	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 && !p.over {
		g := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return g, nil
	}

	p.mu.Unlock()
	return p.add()
}

// put keeps a guardian for the next command. The caller holds the mutex.
func (p *Guardians) put(g *Guardian) {
	if !g.gone && !p.over {
		g.idleSince = time.Now()
		p.idle = append(p.idle, g)
	}
}

// add starts a guardian in the first free slot.
func (p *Guardians) add() (*Guardian, error) {
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return nil, fmt.Errorf("%w: the work is over", ErrRefused)
	}

	slot := 0
	for _, used := p.slots[slot]; used; _, used = p.slots[slot] {
		slot++
	}

	p.slots[slot] = nil
	p.mu.Unlock()

	g, err := p.startGuardian(slot)

	p.mu.Lock()
	defer p.mu.Unlock()

	switch {
	case err != nil:
		delete(p.slots, slot)
		if !p.worked || !OutOfResources(err) {
			p.fail(err, !p.worked && !errors.Is(err, ErrLost))
		}
	case p.over: // Close was called meanwhile
		go func() { _ = g.close() }()
		err = errors.New("the work is over")
	default:
		p.worked = true
		if !g.gone {
			p.slots[slot] = g
		}
		return g, nil
	}

	return nil, fmt.Errorf("%w: %w", ErrRefused, err)
}

// fail counts a guardian that has handled no command. It ends the worker if end
// is true, or after maxFailures in a row. The caller holds the mutex.
func (p *Guardians) fail(err error, end bool) {
	p.failures++
	if (end || p.failures >= maxFailures) && !p.over {
		p.over = true
		p.Fail(err)
	}
}

// remove forgets a guardian that has ended. Its command is dead by then, and
// its attempt ends as lost. The caller holds the mutex.
func (p *Guardians) remove(g *Guardian) {
	delete(p.slots, g.slot)
	switch {
	case g.retired || g.closing.Load() || p.over:
	case g.served:
		p.failures = 0
		p.Log.Warn("a guardian died, and its command with it", "pid", g.process.Pid)
	default:
		p.Log.Warn("a guardian died before it had started a command", "pid", g.process.Pid)
		p.fail(fmt.Errorf("%d guardians in a row died before they had started a command", maxFailures), false)
	}
}

// Start starts a command under a guardian and doesn't wait for it: Child.Wait
// returns the errors of a start, too. The guardian kills the command at the
// deadline, unless Renew moves it, and when this process ends. The command
// finds the two numbers of the key in its environment, as RUNNER_TASK_ID and
// RUNNER_TASK_GENERATION.
func (p *Guardians) Start(c Command, k Key, deadline time.Time) (*Child, error) {
	for {
		g, err := p.take()
		if err != nil {
			return nil, err
		}

		child, err := g.start(c, k, deadline)
		switch {
		case err == nil:
			return child, nil
		case !errors.Is(err, errGone): // or the guardian has died while it was idle; then try another one
			p.mu.Lock()
			defer p.mu.Unlock()
			p.put(g)
			return nil, err
		}
	}
}

// Renew sends the renewed leases and their deadline to the guardians. It also
// checks that the guardians are alive, and closes those that have been idle for
// more than maxIdle.
func (p *Guardians) Renew(keys []Key, deadline time.Time) {
	p.mu.Lock()
	all := p.all()
	for len(p.idle) > 1 && time.Since(p.idle[0].idleSince) > maxIdle {
		spare := p.idle[0]
		p.idle = p.idle[1:]
		go func() { _ = spare.close() }()
	}

	p.mu.Unlock()

	for _, g := range all {
		g.renew(keys, deadline)
	}
}

// all returns the guardians that have started and not ended. The caller holds
// the mutex.
func (p *Guardians) all() []*Guardian {
	return slices.DeleteFunc(slices.Collect(maps.Values(p.slots)), func(g *Guardian) bool { return g == nil })
}

// Close ends the guardians. It returns false if processes of their commands may
// be left.
func (p *Guardians) Close() bool {
	p.mu.Lock()
	p.over = true
	all := p.all()
	p.mu.Unlock()

	var ends sync.WaitGroup
	var dirty atomic.Bool
	for _, g := range all {
		ends.Go(func() {
			if err := g.close(); err != nil {
				dirty.Store(true)
				p.Log.Error("a guardian does not end", "pid", g.process.Pid, "err", err)
			}
		})
	}

	ends.Wait()
	return !dirty.Load()
}

// Child is a command that a guardian starts. Its methods are safe for use by
// many goroutines.
type Child struct {
	g     *Guardian
	key   Key
	ended chan struct{} // closed when exit and err are set
	exit  Exit
	err   error
}

// start asks the guardian to start a command; see Guardians.Start. errGone
// means that the guardian is gone.
func (g *Guardian) start(c Command, k Key, deadline time.Time) (*Child, error) {
	words := strings.Join(slices.Concat([]string{c.Path, c.Dir}, c.Argv, c.Env), "\x00")
	hasNUL := strings.Count(words, "\x00") != 1+len(c.Argv)+len(c.Env)
	if len(c.Argv) == 0 || hasNUL {
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: unix.EINVAL}
	}
	if err := g.pool.Lock.prepareLimits(c.Resources); err != nil {
		return nil, err
	}

	files, null, err := c.files()
	if err != nil {
		return nil, err
	}
	defer null.Close()

	child := &Child{g: g, key: k, ended: make(chan struct{})}
	g.pool.mu.Lock()
	gone := g.gone
	if !gone {
		g.child = child
	}

	g.pool.mu.Unlock()
	if gone {
		return nil, errGone
	}
	if c.LeaveChildren {
		hasLeft.Store(true)
	}

	r := request{Op: opStart, Key: k, Words: []byte(words), Args: len(c.Argv), Leave: c.LeaveChildren}
	r.Deadline, r.Resources = clockAt(deadline), c.Resources
	err = g.send(r, unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd())))
	if err == nil {
		return child, nil
	}

	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()

	if g.child == child { // the guardian hasn't read the whole message, so it starts no command
		g.child = nil
	}

	return nil, fmt.Errorf("%w: %w", errGone, err)
}

// Terminate asks the command to end, as Process.Terminate does. Only the first
// call has an effect.
func (c *Child) Terminate() error { return c.signal(unix.SIGTERM) }

// Kill kills all processes of the command. It doesn't wait.
func (c *Child) Kill() error { return c.signal(unix.SIGKILL) }

func (c *Child) signal(s unix.Signal) error {
	return c.g.send(request{Op: opKill, Key: c.key, Signal: int(s)}, nil)
}

// Ended returns a channel that is closed when the command has ended; Wait then
// returns at once.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits until no process of the command is left, except those that
// LeaveChildren allows, and returns how its leader ended. The error is
// ErrDeadline if the guardian killed the command at its deadline, and ErrLost
// if the command died with its guardian. Any other error is one of Start, or
// ErrRefused: the command was certainly not started.
func (c *Child) Wait() (Exit, error) {
	<-c.ended
	return c.exit, c.err
}
