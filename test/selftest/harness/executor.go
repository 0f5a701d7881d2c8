package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// executor runs the tasks of the workload. Each execution holds the task's lock
// until its last process has ended. A second one that finds the lock held
// overlaps with the first. That needs no clock.
type executor struct {
	workspace
	notes *notesFile
}

const aliveEvery = 50 * time.Millisecond

func newExecutor(w workspace) (*executor, error) {
	notes, err := openNotes(w)
	return &executor{w, notes}, err
}

// resultOf returns the result of an execution. It contains the generation, from
// which evidence.judge learns which execution runner has accepted.
func resultOf(generation int64) string { return fmt.Sprintf(`{"generation":%d}`, generation) }

func (e *executor) begin(task, generation int64, k kind, as string) (*os.File, error) {
	lock, held, err := lockTask(e.locks(), task)
	switch {
	case err != nil:
		return nil, err
	case held:
		e.notes.add(opOverlap, task, generation, as+e.holders(task, generation))
	}

	if as == "command" {
		e.noteProcess(task, generation, []string{leader})
	}

	e.notes.add(opStart, task, generation, string(k))
	return lock, nil
}

func (e *executor) command(k kind, ms int, task, generation int64) int {
	lock, err := e.begin(task, generation, k, "command")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}

	switch k {
	case poison:
		time.Sleep(time.Duration(ms) * time.Millisecond / 4)
		if worker, _ := e.workerAndGuardians(); worker != 0 {
			e.notes.add(opKill, task, generation, fmt.Sprint(worker))
			_ = kill(worker)
		}
		time.Sleep(time.Minute)
	case killsGuardian:
		marker, err := os.OpenFile(filepath.Join(e.dir, fmt.Sprintf("killer-%d", task)), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			marker.Close()
			if worker, guardians := e.workerAndGuardians(); worker != 0 {
				e.notes.add(opGuardians, task, generation, fmt.Sprint(worker))
				// A task with an even id kills only its own guardian. A task
				// with an odd id kills all guardians of the worker.
				if task%2 == 0 {
					guardians = guardians[:1]
				}
				for _, pid := range guardians {
					_ = kill(pid)
				}

				time.Sleep(time.Minute)
			}
		}
	case ignoresTerm, cancelRetry:
		ignoreTerminate()
	case timesOut:
		if task%2 == 0 {
			ignoreTerminate()
		}
	}

	if err := e.prepare(k, lock, time.Duration(ms)*time.Millisecond, task, generation); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}

	e.work(context.Background(), k, time.Duration(ms)*time.Millisecond, task, generation)
	e.notes.add(opEnd, task, generation, "")
	fmt.Println(k, ms)
	if k == failing {
		return 1
	}
	if k == otherUser { // with its new user it can't write the result; prepare has written it
		return 0
	}
	if err := writeResult(generation); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}

	return 0
}

// prepare does what a task does before it waits. Depending on its kind, the
// task changes its user or leaves processes behind.
func (e *executor) prepare(k kind, lock *os.File, d time.Duration, task, generation int64) error {
	switch {
	case k == otherUser:
		if err := writeResult(generation); err != nil {
			return err
		}
		return dropPrivileges()
	case lock == nil: // an earlier execution still holds the task's lock; begin has noted the overlap
		return nil
	case k == leavesHidden:
		return e.leaveProcesses(lock, d, task, generation)
	case k == leavesProcesses:
		for _, traits := range findableTraits {
			if err := e.leaveProcess(lock, traits, task, generation); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeResult writes the result of a command. It repeats a failed write,
// because the disk may be full for a moment.
func writeResult(generation int64) error {
	err := os.WriteFile(os.Getenv("RUNNER_RESULT"), []byte(resultOf(generation)), 0o600)
	for end := time.Now().Add(2 * maxDiskFull); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = os.WriteFile(os.Getenv("RUNNER_RESULT"), []byte(resultOf(generation)), 0o600)
	}
	return err
}

// workerAndGuardians returns this command's worker and that worker's guardians,
// this command's first. worker is 0 if the worker or this command's guardian is
// dead.
func (e *executor) workerAndGuardians() (worker int, guardians []int) {
	own, _ := parentOf(os.Getpid())
	worker = own
	for {
		parent, name := parentOf(worker)
		if name != guardianName {
			break
		}
		worker = parent
	}

	if worker == own || !slices.Contains(processesOf(e.dir), worker) {
		return 0, nil
	}

	others := slices.DeleteFunc(readTree().guardians(worker), func(pid int) bool { return pid == own })
	return worker, append([]int{own}, others...)
}

// holders lists the living processes of earlier attempts, which hold the lock
// of the task.
func (e *executor) holders(task, generation int64) (names string) {
	notes, _ := readNotes(e.workspace)
	for _, n := range notes {
		if at, _, ok := n.process(); ok && n.task == task && n.generation < generation && startTime(n.pid) == at {
			names += fmt.Sprintf(" %d/%d", n.pid, at)
		}
	}
	return names
}

// work waits for the duration of a task. Long tasks note every 50 ms that they
// are alive.
func (e *executor) work(ctx context.Context, k kind, d time.Duration, task, generation int64) {
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
				e.notes.add(opAlive, task, generation, "")
			}
		}
	}
}

func (e *executor) function(ctx context.Context, d operation, task, generation int64) error {
	lock, err := e.begin(task, generation, d.Kind, "function")
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
		e.notes.add(opKill, task, generation, fmt.Sprint(os.Getpid()))
		_ = kill(os.Getpid())
		time.Sleep(time.Minute)
	case ignoresTerm:
		ctx = context.WithoutCancel(ctx)
	}

	e.work(ctx, d.Kind, ms, task, generation)
	e.notes.add(opEnd, task, generation, "")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case d.Kind == failing:
		return errors.New("as it should")
	}

	return nil
}
