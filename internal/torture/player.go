package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// player runs the tasks of the workload. Each execution of a task, as long as any process of it lives, holds the task's lock: so
// whoever starts beside another one knows it, and no clock is asked.
type player struct {
	stage
	notes *notebook
}

const aliveEvery = 50 * time.Millisecond

func newPlayer(s stage) (*player, error) {
	notes, err := openNotes(s)
	return &player{s, notes}, err
}

// resultOf is what an execution leaves: so it can be told whose end was accepted.
func resultOf(generation int64) string { return fmt.Sprintf(`{"generation":%d}`, generation) }

func (p *player) enter(task, generation int64, k kind, as string) (*os.File, error) {
	lock, held, err := seize(p.locks(), task)
	switch {
	case err != nil:
		return nil, err
	case held:
		p.notes.add(opOverlap, task, generation, as)
		if as == "command" {
			return nil, errors.New("another execution of this task is alive")
		}
	}
	p.notes.add(opStart, task, generation, string(k))
	return lock, nil
}

func (p *player) command(k kind, ms int, task, generation int64) int {
	lock, err := p.enter(task, generation, k, "command")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	switch k {
	case poison:
		time.Sleep(time.Duration(ms) * time.Millisecond / 4)
		if worker := p.worker(); worker != 0 {
			p.notes.add(opKill, task, generation, fmt.Sprint(worker))
			_ = kill(worker)
		}
		time.Sleep(time.Minute)
	case killer:
		marker, err := os.OpenFile(filepath.Join(p.dir, fmt.Sprintf("killer-%d", task)), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			marker.Close()
			if worker := p.worker(); worker != 0 {
				p.notes.add(opGuard, task, generation, fmt.Sprint(worker))
				_ = kill(os.Getppid()) // the guardian of this command
				time.Sleep(time.Minute)
			}
		}
	case deaf, regret:
		ignoreTerminate()
	case family:
		if err := p.breed(lock); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 99
		}
	}
	p.pass(context.Background(), k, time.Duration(ms)*time.Millisecond, task, generation)
	p.notes.add(opEnd, task, generation, "")
	fmt.Println(k, ms)
	if k == failing {
		return 1
	}
	err = os.WriteFile(os.Getenv("RUNNER_RESULT"), []byte(resultOf(generation)), 0o600)
	for end := time.Now().Add(2 * fullMost); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // the disk may be full
		err = os.WriteFile(os.Getenv("RUNNER_RESULT"), []byte(resultOf(generation)), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return 0
}

// worker returns the worker of a command, which is the parent of its guardian; 0 when either is dead: then somebody else has their children.
func (p *player) worker() int {
	guardian, _ := parentOf(os.Getpid())
	worker, name := parentOf(guardian)
	if name != "guardian" {
		return 0
	}
	if !slices.Contains(within(p.dir), worker) {
		return 0
	}
	return worker
}

// pass lets time pass; long tasks give signs of life meanwhile.
func (p *player) pass(ctx context.Context, k kind, d time.Duration, task, generation int64) {
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	for end := time.After(d); ; {
		select {
		case <-end:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			if k == long {
				p.notes.add(opAlive, task, generation, "")
			}
		}
	}
}

// breed leaves a child of each shape behind. All but the one without an environment hold the task's lock with it.
func (p *player) breed(lock *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, shape := range shapes {
		c := exec.Command(self)
		c.Args = []string{os.Args[0], RoleCommand, "child", p.dir}
		c.ExtraFiles = []*os.File{lock}
		shape(c)
		if err := c.Start(); err != nil {
			return err
		}
		if c.Args[len(c.Args)-1] == "again" {
			if err := c.Wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *player) function(ctx context.Context, d deed, task, generation int64) error {
	lock, err := p.enter(task, generation, d.Kind, "function")
	if err != nil {
		return err
	}
	if lock != nil {
		defer lock.Close()
	}
	ms := time.Duration(d.MS) * time.Millisecond
	switch d.Kind {
	case poison:
		time.Sleep(ms / 4)
		p.notes.add(opKill, task, generation, fmt.Sprint(os.Getpid()))
		_ = kill(os.Getpid())
		time.Sleep(time.Minute)
	case deaf:
		ctx = context.WithoutCancel(ctx)
	}
	p.pass(ctx, d.Kind, ms, task, generation)
	p.notes.add(opEnd, task, generation, "")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case d.Kind == failing:
		return errors.New("as it should")
	}
	return nil
}
