package selftest

import (
	"sync"
	"time"
)

// watch looks how long the processes of attempts live. Each of them has written down its pid and when it started.
type watcher struct {
	workspace
	notes    *notesFile
	stopping chan struct{}
	once     sync.Once
	done     sync.WaitGroup
	living   map[attemptProcess]bool
	lastSeen map[attemptProcess]int64 // alive, and when last; monotonic µs
}

// member is a process of an attempt.
type attemptProcess struct {
	pid              int
	start            int64 // in ticks since the boot
	task, generation int64
	traits           string
}

const watchEvery = 200 * time.Millisecond

func newWatcher(dir workspace, notes *notesFile) *watcher {
	w := &watcher{workspace: dir, notes: notes, stopping: make(chan struct{}), living: map[attemptProcess]bool{}, lastSeen: map[attemptProcess]int64{}}
	w.done.Go(func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for read := int64(0); ; {
			select {
			case <-w.stopping:
				return
			case <-ticker.C:
				read = w.look(read)
			}
		}
	})
	return w
}

// look reads the notes from an offset on, and looks at the processes that they name and at all that lived the last time.
func (w *watcher) look(from int64) (next int64) {
	notes, next := w.notes.since(from)
	for _, n := range notes {
		if at, how, ok := n.process(); ok {
			w.living[attemptProcess{n.pid, at, n.task, n.generation, how}] = true
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

// killLeft kills what is left of a run that found a bug.
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
