package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A leftover is a process that a command starts and doesn't wait for. Traits
// describe how the command starts it and what the leftover does to itself.
const (
	ownGroup       = "group"       // starts in its own process group, like a job of an interactive shell
	ownSession     = "session"     // starts in its own session, as setsid does
	doubleFork     = "double-fork" // is started by an intermediate process that ends at once
	asSibling      = "sibling"     // is started with clone(CLONE_PARENT), so its parent is the parent of the command
	noEnvironment  = "no-env"      // has an empty environment
	undumpable     = "undumpable"  // sets PR_SET_DUMPABLE to 0, as ssh-agent does: only root can read its environment
	changesUser    = "other-user"  // changes to another user, if this process may do so
	ignoresSIGTERM = "ignore-term" // ignores SIGTERM

	leader = "leader" // is the first process of a command, so it is no leftover
)

// findableTraits has the traits of each process that a task of the kind
// leavesProcesses leaves behind.
var findableTraits = [][]string{{}, {ownGroup}, {ownSession}, {ownSession, doubleFork}, {doubleFork}, {ownSession, noEnvironment}}

const (
	maxLeftovers     = 20               // maximum number of processes that one task leaves behind
	leftoverLifetime = 90 * time.Second // how long a leftover lives if nothing kills it; far longer than an attempt
)

// drawTraits draws the traits of a leftover. Most leftovers have no environment
// that identifies them.
func drawTraits(random *rand.Rand) (traits []string) {
	for _, w := range []struct {
		word string
		of   int // percentage of leftovers with the trait
	}{{ownSession, 70}, {doubleFork, 30}, {asSibling, 20}, {noEnvironment, 60}, {undumpable, 40}, {changesUser, 25}, {ignoresSIGTERM, 30}} {
		if random.IntN(100) < w.of {
			traits = append(traits, w.word)
		}
	}
	return traits
}

// leaveProcesses leaves a random number of processes behind, one after the
// other in the first half of d. They hold the task's lock.
func (e *executor) leaveProcesses(lock *os.File, d time.Duration, task, generation int64) error {
	random := rand.New(rand.NewPCG(uint64(task), uint64(generation)))
	most := 1 + random.IntN(maxLeftovers)
	n := 1 + random.IntN(most) // usually few processes, sometimes many
	for range n {
		if err := e.leaveProcess(lock, drawTraits(random), task, generation); err != nil {
			return err
		}
		time.Sleep(d / time.Duration(2*n))
	}

	return nil
}

// leaveProcess leaves one process behind. That process holds the lock of the
// task. If the command has no cgroup, the process doesn't hide its environment,
// because nothing finds a hidden process after its worker and its guardian.
func (e *executor) leaveProcess(lock *os.File, traits []string, task, generation int64) error {
	if !inCgroup() {
		traits = slices.DeleteFunc(slices.Clone(traits), func(w string) bool { return w == noEnvironment || w == undumpable })
	}

	self, err := os.Executable()
	if err != nil {
		return err
	}

	c := exec.Command(self)
	c.Args = append([]string{self, RoleCommand, "child", e.dir, fmt.Sprint(task), fmt.Sprint(generation)}, traits...)
	c.ExtraFiles = []*os.File{lock}
	if slices.Contains(traits, noEnvironment) {
		c.Env = []string{}
	}

	setStartTraits(c, traits)
	if err := c.Start(); err != nil {
		return err
	}

	// Wait for the intermediate process of a double fork, which ends at once.
	// With the trait asSibling it is no child of this process.
	if slices.Contains(traits, doubleFork) && !slices.Contains(traits, asSibling) {
		return c.Wait()
	}

	return nil
}

// Child runs as a leftover of a command. The arguments are the task, the
// generation and the traits. With the trait double-fork, this process is the
// intermediate one: it starts the leftover as its own child and ends.
func Child(dir string, args []string) error {
	if len(args) < 2 {
		return errors.New("a child of which task?")
	}

	task, errTask := strconv.ParseInt(args[0], 10, 64)
	generation, errGeneration := strconv.ParseInt(args[1], 10, 64)
	if err := errors.Join(errTask, errGeneration); err != nil {
		return err
	}

	e, err := newExecutor(workspace{dir})
	if err != nil {
		return err
	}

	args = args[2:]
	if at := slices.Index(args, doubleFork); at >= 0 {
		// Start the leftover without the traits that this intermediate process
		// already has.
		own := slices.DeleteFunc(slices.Clone(args), func(w string) bool {
			return w == doubleFork || w == ownSession || w == ownGroup || w == asSibling
		})
		return e.leaveProcess(os.NewFile(3, "lock"), own, task, generation)
	}

	e.noteProcess(task, generation, args)
	setOwnTraits(args)
	time.Sleep(leftoverLifetime)
	return nil
}

// noteProcess notes that this process belongs to an attempt. By this note the
// watcher finds the process even if the process later changes its environment,
// session or user.
func (e *executor) noteProcess(task, generation int64, traits []string) {
	e.notes.add(opProcess, task, generation, fmt.Sprintf("%d %s", startTime(os.Getpid()), strings.Join(traits, ",")))
}
