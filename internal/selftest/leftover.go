package selftest

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

// A leftover is a process that a command starts and does not wait for. Words say how it is started and what it does to itself:
//
//	group    in a process group of its own, as by a shell with job control
//	session  in a session of its own, as by setsid
//	again    by a process between that ends, as by a double fork
//	sibling  by clone(CLONE_PARENT): its parent is the parent of the command
//	bare     with an empty environment
//	secret   PR_SET_DUMPABLE is 0, as ssh-agent has it: only root reads its environment
//	foreign  it changes to another user, if it may
//	deaf     it ignores TERM

// plainWays are the leftovers of a task of the kind family, each harder to find than the one before.
var plainWays = [][]string{{}, {"group"}, {"session"}, {"session", "again"}, {"again"}, {"session", "bare"}}

const (
	leftoversMost = 20               // of a task of the kind orphans
	leftoverFor   = 90 * time.Second // that a leftover would live: longer than the longest wait for the end of an attempt
)

// drawWords draws the words of a leftover. Most of them have no environment to be found by.
func drawWords(random *rand.Rand) (words []string) {
	for _, w := range []struct {
		word string
		of   int // a hundred
	}{{"session", 70}, {"again", 30}, {"sibling", 20}, {"bare", 60}, {"secret", 40}, {"foreign", 25}, {"deaf", 30}} {
		if random.IntN(100) < w.of {
			words = append(words, w.word)
		}
	}
	return words
}

// leaveSome leaves as many processes behind as chance says, over the time d. They hold the lock of the task.
func (p *executor) leaveProcesses(lock *os.File, d time.Duration, task, generation int64) error {
	random := rand.New(rand.NewPCG(uint64(task), uint64(generation)))
	most := 1 + random.IntN(leftoversMost)
	n := 1 + random.IntN(most) // few as a rule, many now and then
	for range n {
		if err := p.leaveProcess(lock, drawWords(random), task, generation); err != nil {
			return err
		}
		time.Sleep(d / time.Duration(2*n))
	}
	return nil
}

// leave leaves a process behind. It holds the lock of the task.
func (p *executor) leaveProcess(lock *os.File, words []string, task, generation int64) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self)
	c.Args = append([]string{os.Args[0], RoleCommand, "child", p.dir, fmt.Sprint(task), fmt.Sprint(generation)}, words...)
	c.ExtraFiles = []*os.File{lock}
	if slices.Contains(words, "bare") {
		c.Env = []string{}
	}
	shape(c, words)
	if err := c.Start(); err != nil {
		return err
	}
	if slices.Contains(words, "again") && !slices.Contains(words, "sibling") { // a sibling is not this process's child
		return c.Wait()
	}
	return nil
}

// Child is a leftover of a command: words are the task, the generation and how it came about. With the word again it leaves the rest to a
// child of its own and ends.
func Child(dir string, words []string) error {
	if len(words) < 2 {
		return errors.New("a child of which task?")
	}
	task, errTask := strconv.ParseInt(words[0], 10, 64)
	generation, errGeneration := strconv.ParseInt(words[1], 10, 64)
	if err := errors.Join(errTask, errGeneration); err != nil {
		return err
	}
	p, err := newExecutor(workspace{dir})
	if err != nil {
		return err
	}
	words = words[2:]
	if at := slices.Index(words, "again"); at >= 0 {
		own := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
			return w == "again" || w == "session" || w == "group" || w == "sibling" // these are done
		})
		return p.leaveProcess(os.NewFile(3, "lock"), own, task, generation)
	}
	p.noteProcess(task, generation, words)
	settle(words)
	time.Sleep(leftoverFor)
	return nil
}

// note writes down this process as one of an attempt, by which it is found whatever it does later.
func (p *executor) noteProcess(task, generation int64, words []string) {
	p.notes.add(opProcess, task, generation, fmt.Sprintf("%d %s", startTime(os.Getpid()), strings.Join(words, ",")))
}
