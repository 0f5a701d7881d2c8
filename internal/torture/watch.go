package torture

import (
	"sync"
	"time"
)

// watch looks at the processes of commands, by the variables that each of them was given.
type watch struct {
	stage
	over chan struct{}
	once sync.Once
	done sync.WaitGroup
	seen map[tag]int64 // alive, and when last; monotonic µs
}

const watchEvery = 200 * time.Millisecond

func newWatch(s stage) *watch {
	w := &watch{stage: s, over: make(chan struct{}), seen: map[tag]int64{}}
	w.done.Go(func() {
		ticker := time.NewTicker(watchEvery)
		defer ticker.Stop()
		for {
			select {
			case <-w.over:
				return
			case <-ticker.C:
				for _, t := range tagged(w.addresses()...) {
					w.seen[t] = monotonic()
				}
			}
		}
	})
	return w
}

func (w *watch) end() {
	w.once.Do(func() { close(w.over) })
	w.done.Wait()
}

// killLeft kills what is left of a run that found a bug, and what may be left: processes that cleared their environment.
func (w *watch) killLeft() {
	for range 3 {
		list := within(w.dir)
		for _, pid := range list {
			_ = kill(pid)
		}
		if len(list) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
