package output

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// pieces is how many pieces of output one read returns. A piece has at most 32
// KiB.
const pieces = 64

// Range says which part of a task's output to print.
type Range struct {
	All   bool      // whether to print all attempts
	N     int       // print only attempts with this number; 0 for the latest attempt and those that start later
	Began time.Time // if set, leave out finished attempts that started before this time
	Lines int       // number of lines to print from the end of the first printed attempt; -1 for all lines
}

// lastBefore returns the generation of the last attempt before the range, or 0
// if the range can contain the first one. Without All, N and Began, the range
// begins with the latest attempt.
func (w Range) lastBefore(attempts []admin.Attempt) int64 {
	if w.All || w.N > 0 || !w.Began.IsZero() || len(attempts) < 2 {
		return 0
	}
	return attempts[len(attempts)-2].GenerationID
}

// shows reports whether the range contains an attempt.
func (w Range) shows(a admin.Attempt) bool {
	return (w.N == 0 || a.Number == w.N) && (w.Began.IsZero() || a.State == jobs.Running || !a.StartedAt.Before(w.Began))
}

// Cursor says which output of a task is already printed.
type Cursor struct {
	Range      Range
	generation int64           // the task's, when Advance read its attempts last; 0 at first
	attempts   []admin.Attempt // attempts whose output is not completely printed
	shown      int64           // generation of the last completely printed attempt
	reading    int64           // generation of the attempt that is being printed
	seq        int64           // number of the last printed piece of the attempt that is being printed
	bytes      int64           // printed or missing bytes of this attempt; too low after readLast
	any        bool            // whether at least one attempt was printed
}

// Advance prints what a task has printed since the last call. Read t just
// before. done means that no output will follow.
func (f *Cursor) Advance(ctx context.Context, r *runner.Runner, t jobs.Task, to *LogPrinter) (done bool, err error) {
	if t.GenerationID != f.generation {
		attempts, err := admin.Attempts(ctx, r, t)
		if err != nil {
			return false, err
		}

		// If the task has changed since it was read, the list has the running
		// attempt twice: keep the first, which is newer.
		attempts = slices.CompactFunc(attempts, func(a, b admin.Attempt) bool { return a.GenerationID == b.GenerationID })
		if f.generation == 0 {
			f.shown = f.Range.lastBefore(attempts)
		}

		f.attempts = slices.DeleteFunc(attempts, func(a admin.Attempt) bool {
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
		if to.teed[a.GenerationID] {
			f.bytes = a.OutputBytes
		}
		if err := to.end(t, a, f.bytes, len(f.attempts) > 1 || !t.State.Finished()); err != nil {
			return false, err
		}

		f.shown, f.attempts = a.GenerationID, f.attempts[1:]
	}

	return t.State.Finished() || f.Range.N > 0 && t.Attempt > f.Range.N, nil
}

// read prints the rest of an attempt's output.
func (f *Cursor) read(ctx context.Context, r *runner.Runner, t jobs.Task, a admin.Attempt, to *LogPrinter) error {
	if f.reading != a.GenerationID {
		f.reading, f.seq, f.bytes = a.GenerationID, 0, 0
		if !f.any && f.Range.Lines >= 0 {
			return f.readLast(ctx, r, t, a, to)
		}
		f.any = true
	}

	for {
		chunks, err := admin.Output(ctx, r, a, f.seq, pieces)
		// Look at teed after reading: a worker in this process calls Tee before
		// it stores a piece, so these chunks weren't printed if the attempt
		// isn't there.
		if err != nil || to.teed[a.GenerationID] {
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

// readLast prints the last lines of an attempt. It reads the output from its
// end, in larger and larger parts.
func (f *Cursor) readLast(ctx context.Context, r *runner.Runner, t jobs.Task, a admin.Attempt, to *LogPrinter) error {
	f.any = true
	for limit := 8; ; limit *= 4 {
		chunks, err := ui.OutputBefore(ctx, r, a, math.MaxInt64, limit)
		if err != nil {
			return err
		}

		last, enough := db.LastLines(chunks, f.Range.Lines)
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

// show prints a piece of output, and tells the printer how many bytes before it
// are missing. A worker keeps the first HeadSize bytes of an output and may
// drop bytes after these: DroppedBytes before this piece. Some of them may have
// been printed before the worker dropped them, so HeadSize + DroppedBytes less
// the printed bytes are missing.
func (f *Cursor) show(t jobs.Task, c admin.Chunk, to *LogPrinter) error {
	missing := int64(0)
	switch {
	case c.DroppedBytes > 0:
		missing = max(min(c.DroppedBytes, taskspec.HeadSize(t.OutputLimit)+c.DroppedBytes-f.bytes), 0)
	case c.Seq > f.seq+1 && f.seq > 0:
		missing = unknown // pieces before this one were deleted before this process could print them
	}

	f.seq = c.Seq
	f.bytes += int64(len(c.Data)) + max(missing, 0)
	return to.piece(t, c, missing)
}

// Follow prints the part of the tasks' output that which selects, until all of
// them have finished or were deleted.
func Follow(ctx context.Context, r *runner.Runner, ids []int64, which Range, to *LogPrinter) error {
	cursors := map[int64]*Cursor{}
	for _, id := range ids {
		cursors[id] = &Cursor{Range: which}
	}

	err := Changes(ctx, r, func() (bool, error) {
		list, err := r.List(ctx, jobs.Filter{IDs: ids, OldestFirst: true})
		if err != nil {
			return false, err
		}

		var left []int64
		for _, t := range list {
			done, err := to.advance(ctx, r, t, cursors[t.ID])
			if err != nil {
				return false, err
			}
			if !done {
				left = append(left, t.ID)
			}
		}

		ids = left
		return len(left) == 0, nil
	})
	if err != nil {
		return err
	}

	return to.Finish()
}

// Alone calls f while Tee prints nothing.
func (s *LogPrinter) Alone(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// advance prints what is new of a task, while Tee prints nothing.
func (s *LogPrinter) advance(ctx context.Context, r *runner.Runner, t jobs.Task, cursor *Cursor) (done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, err = cursor.Advance(ctx, r, t, s); !done {
		s.Obstacles.Look(ctx)
	}
	return done, cmp.Or(err, s.P.Flush(), s.err)
}
