package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"
)

// payload is the argument of every task of every system: about a hundred bytes
// of JSON.
type payload struct {
	N       int    `json:"n"`
	To      string `json:"to"`
	Subject string `json:"subject"`
}

func newPayload(n int) payload {
	return payload{N: n, To: "someone@example.com", Subject: "a payload of about one hundred bytes, as tasks have"}
}

func (p payload) json() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// ledger counts the runs of each task. It is safe for concurrent use.
type ledger struct {
	ran   []atomic.Int32
	count atomic.Int32
	over  chan struct{} // closed when the total number of runs equals the number of tasks
}

func newLedger(n int) *ledger {
	return &ledger{ran: make([]atomic.Int32, n), over: make(chan struct{})}
}

// note records a run of task n. The measured tasks do nothing but call note.
func (l *ledger) note(n int) {
	l.ran[n].Add(1)
	if int(l.count.Add(1)) == len(l.ran) {
		close(l.over)
	}
}

// check returns an error unless each task ran exactly once.
func (l *ledger) check() error {
	for n := range l.ran {
		if ran := l.ran[n].Load(); ran != 1 {
			return fmt.Errorf("task %d ran %d times", n, ran)
		}
	}
	return nil
}

// wait returns when the total number of runs equals the number of tasks.
func (l *ledger) wait(ctx context.Context) error {
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(10 * time.Minute):
		return fmt.Errorf("%d of %d tasks have run", l.count.Load(), len(l.ran))
	}
}
