package selftest

import (
	"sync"
	"time"
)

// watch looks how long the processes of attempts live. Each of them has written down its pid and when it started.
type watch struct {
	workspace
	notes *notesFile
	over  chan struct{}
	once  sync.Once
	done  sync.WaitGroup
	alive map[attemptProcess]bool
	seen  map[attemptProcess]int64 // alive, and when last; monotonic µs
}

// member is a process of an attempt.
type attemptProcess struct {
	pid              int
	start            int64 // in ticks since the boot
	task, generation int64
	traits           string
}

const watchEvery = 200 * time.Millisecond

func newWatch(s workspace, notes *notesFile) *watch {
	w := &watch{workspace: s, notes: notes, over: make(chan struct{}), alive: map[attemptProcess]bool{}, seen: map[attemptProcess]int64{}}
	w.done.Go(func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for read := int64(0); ; {
			select {
			case <-w.over:
				return
			case <-ticker.C:
				read = w.look(read)
			}
		}
	})
	return w
}

// look reads the notes from an offset on, and looks at the processes that they name and at all that lived the last time.
func (w *watch) look(from int64) (next int64) {
	notes, next := w.notes.since(from)
	for _, n := range notes {
		if at, how, ok := n.process(); ok {
			w.alive[attemptProcess{n.pid, at, n.task, n.generation, how}] = true
		}
	}
	for m := range w.alive {
		if startTime(m.pid) != m.start {
			delete(w.alive, m)
			continue
		}
		w.seen[m] = monotonic()
	}
	return next
}

func (w *watch) end() {
	w.once.Do(func() { close(w.over) })
	w.done.Wait()
}

// killLeft kills what is left of a run that found a bug.
func (w *watch) killLeft() {
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
