package harness

import (
	"sync"
	"time"
)

// watcher records how long the processes of attempts live. Each of these
// processes has noted its pid and its start time.
type watcher struct {
	workspace
	notes    *notesFile
	stopping chan struct{}
	once     sync.Once
	done     sync.WaitGroup
	living   map[attemptProcess]bool
	lastSeen map[attemptProcess]int64 // time at which each process was last seen alive; monotonic clock in µs
}

// attemptProcess identifies a process of an attempt.
type attemptProcess struct {
	pid              int
	start            int64 // start of the process in ticks since boot
	task, generation int64
	traits           string
}

const watchEvery = 200 * time.Millisecond

func newWatcher(dir workspace, notes *notesFile) *watcher {
	w := &watcher{workspace: dir, notes: notes, stopping: make(chan struct{}), living: map[attemptProcess]bool{},
		lastSeen: map[attemptProcess]int64{}}
	w.done.Go(func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()

		for read := int64(0); ; {
			select {
			case <-w.stopping:
				return
			case <-ticker.C:
				read = w.check(read)
			}
		}
	})
	return w
}

// check reads the notes from an offset on and remembers the processes that they
// name. Then it checks which of all remembered processes are alive.
func (w *watcher) check(from int64) (next int64) {
	notes, next := w.notes.readFrom(from)
	for _, n := range notes {
		if start, traits, ok := n.process(); ok {
			w.living[attemptProcess{n.pid, start, n.task, n.generation, traits}] = true
		}
	}

	for m := range w.living {
		if startTime(m.pid) != m.start {
			delete(w.living, m)
			continue
		}
		w.lastSeen[m] = monotonic()
	}

	return next
}

func (w *watcher) end() {
	w.once.Do(func() { close(w.stopping) })
	w.done.Wait()
}

// killRemaining kills the processes that a run has left because of a bug.
func (w *watcher) killRemaining() {
	for range 3 {
		list := processesOf(w.dir)
		for _, pid := range list {
			_ = kill(pid)
		}

		if len(list) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
