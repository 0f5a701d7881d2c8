// Package output follows the output of tasks and prints it.
package output

import (
	"bytes"
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/await"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// pieces is how many pieces of output are read at a time: each has at most 32 KiB.
const pieces = 64

// Range says what of a task's output is meant.
type Range struct {
	All   bool      // every attempt
	N     int       // the attempts numbered n; 0: the latest, and those that come
	Began time.Time // not zero: attempts that run, or started since then
	Lines int       // of the first attempt that is shown the last lines only, those that come apart; -1: all
}

// first returns the generation of the last attempt that is not shown.
func (w Range) first(attempts []jobs.Attempt) int64 {
	if w.All || w.N > 0 || !w.Began.IsZero() || len(attempts) < 2 {
		return 0
	}
	return attempts[len(attempts)-2].GenerationID
}

// shows says whether an attempt is meant.
func (w Range) shows(a jobs.Attempt) bool {
	return (w.N == 0 || a.Attempt == w.N) && (w.Began.IsZero() || a.State == jobs.Running || !a.StartedAt.Before(w.Began))
}

// Cursor is a task whose output is being shown, and how far.
type Cursor struct {
	Range      Range
	generation int64          // of the task, when its attempts were read; 0: not yet
	attempts   []jobs.Attempt // that are not shown to their end
	shown      int64          // generation of the last attempt that is shown to its end
	reading    int64          // generation of the attempt that is shown in part
	seq        int64          // of its last piece that is shown
	bytes      int64          // of it that are shown, or known not to be kept
	any        bool           // some attempt was shown
}

// Advance shows what a task has printed since the last call; t is the task as it was read just before. done says that nothing
// more will come.
func (f *Cursor) Advance(ctx context.Context, r *runner.Runner, t jobs.Task, to *LogPrinter) (done bool, err error) {
	if t.GenerationID != f.generation {
		attempts, err := r.Attempts(ctx, t)
		if err != nil {
			return false, err
		}
		// The task may have moved since it was read: then its running attempt is there twice, the true one first.
		attempts = slices.CompactFunc(attempts, func(a, b jobs.Attempt) bool { return a.GenerationID == b.GenerationID })
		if f.generation == 0 {
			f.shown = f.Range.first(attempts)
		}
		f.attempts = slices.DeleteFunc(attempts, func(a jobs.Attempt) bool {
			return a.GenerationID <= f.shown || a.GenerationID != f.reading && !f.Range.shows(a)
		})
		f.generation = t.GenerationID
	}
	for len(f.attempts) > 0 {
		a := f.attempts[0]
		if err := f.read(ctx, r, t, a, to); err != nil {
			return false, err
		}
		if a.State == jobs.Running {
			return false, nil
		}
		if err := to.end(t, a, f.bytes, len(f.attempts) > 1 || !t.State.Finished()); err != nil {
			return false, err
		}
		f.shown, f.attempts = a.GenerationID, f.attempts[1:]
	}
	return t.State.Finished() || f.Range.N > 0 && t.Attempt > f.Range.N, nil
}

// read shows what an attempt has printed and is not shown yet.
func (f *Cursor) read(ctx context.Context, r *runner.Runner, t jobs.Task, a jobs.Attempt, to *LogPrinter) error {
	if f.reading != a.GenerationID {
		f.reading, f.seq, f.bytes = a.GenerationID, 0, 0
		if !f.any && f.Range.Lines >= 0 {
			return f.readLast(ctx, r, t, a, to)
		}
		f.any = true
	}
	for {
		chunks, err := r.Output(ctx, a, f.seq, pieces)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			if err := f.show(t, c, to); err != nil {
				return err
			}
		}
		if len(chunks) < pieces {
			return nil
		}
	}
}

// readLast shows the last lines of an attempt. It reads from the end.
func (f *Cursor) readLast(ctx context.Context, r *runner.Runner, t jobs.Task, a jobs.Attempt, to *LogPrinter) error {
	f.any = true
	for limit := 8; ; limit *= 4 {
		chunks, err := admin.LastOutput(ctx, r, a, limit)
		if err != nil {
			return err
		}
		last, enough := tailOf(chunks, f.Range.Lines)
		if !enough && len(chunks) == limit {
			continue
		}
		for _, c := range last {
			if err := f.show(t, c, to); err != nil {
				return err
			}
		}
		if len(chunks) > 0 {
			f.seq, f.bytes = chunks[len(chunks)-1].Seq, 1
		}
		return nil
	}
}

// show hands a piece on, and says how much was printed before it that is not kept. Whoever follows has seen some of the middle that
// is dropped later: what is missing is counted from the size of the head and from what was shown.
func (f *Cursor) show(t jobs.Task, c jobs.Chunk, to *LogPrinter) error {
	missing := int64(0)
	switch {
	case c.DroppedBytes > 0:
		missing = max(min(c.DroppedBytes, admin.HeadSize(t.OutputLimit)+c.DroppedBytes-f.bytes), 0)
	case c.Seq > f.seq+1 && f.seq > 0:
		missing = unknown // dropped before it could be shown
	}
	f.seq = c.Seq
	f.bytes += int64(len(c.Data)) + max(missing, 0)
	return to.piece(t, c, missing)
}

// tailOf cuts pieces down to their last n lines. enough says that nothing before them is needed.
func tailOf(chunks []jobs.Chunk, n int) (last []jobs.Chunk, enough bool) {
	if n == 0 {
		return nil, true
	}
	lines := 0
	for i, c := range slices.Backward(chunks) {
		end := len(c.Data)
		if i == len(chunks)-1 {
			end-- // the newline at the very end begins no line
		}
		for end >= 0 {
			at := bytes.LastIndexByte(c.Data[:end], '\n')
			if at < 0 {
				break
			}
			if lines++; lines == n {
				last = slices.Clone(chunks[i:])
				if last[0].Data, last[0].DroppedBytes = c.Data[at+1:], 0; len(last[0].Data) == 0 {
					last = last[1:]
				}
				return last, true
			}
			end = at
		}
	}
	return chunks, false
}

// Follow shows what tasks print until all of them have finished, or were deleted.
func Follow(ctx context.Context, r *runner.Runner, ids []int64, tasks map[int64]*Cursor, to *LogPrinter) error {
	var pace await.Pace
	err := r.Changes(ctx, func() (bool, error) {
		if err := pace.Next(ctx); err != nil {
			return false, err
		}
		defer pace.Taken()
		list, err := r.List(ctx, jobs.Filter{IDs: ids}, runner.Page{Oldest: true})
		if err != nil {
			return false, err
		}
		var left []int64
		for _, t := range list {
			done, err := tasks[t.ID].Advance(ctx, r, t, to)
			if err != nil {
				return false, err
			}
			if !done {
				left = append(left, t.ID)
			}
		}
		ids = left
		return len(left) == 0, to.P.Flush()
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
