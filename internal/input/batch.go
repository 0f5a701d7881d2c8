package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Options say where the lines of a batch come from, and what their tasks have
// in common.
type Options struct {
	File   string // path of a file with JSON Lines, or - for stdin
	Each   *Each  // the command of --each, whose lines come from stdin; nil for JSON Lines
	Stdin  io.Reader
	Base   jobs.Spec // defaults for the fields of each line
	Caller ops.Invocation
}

// Batch is the input of --batch or --each.
type Batch struct {
	p      *ui.Printer
	name   string
	each   *Each // nil for JSON Lines
	lines  *lineReader
	ids    map[string]int // for the id of a line, the position of its task
	bar    ui.Bar
	in     io.Reader
	opened *os.File // the opened file; nil for stdin
	copied *os.File // copy of a pipe; nil if there is none
}

// Open opens the input. Add adds all tasks in one transaction, so Open first
// copies a pipe to a file: a slow one would keep the transaction open and block
// other writers. A pipe is read until it ends, even if a context has ended.
func Open(p *ui.Printer, o Options) (*Batch, error) {
	o.Base.Batch = jobs.NewBatch
	b := &Batch{p: p, name: "stdin", each: o.Each, lines: newLineReader(o.Base, o.Caller), in: o.Stdin,
		ids: map[string]int{}}
	if o.Each == nil && o.File != "-" {
		file, err := os.Open(o.File)
		if err != nil {
			return nil, ui.Usage("--batch %q: %v", o.File, humanize.Reason(err))
		}
		if info, err := file.Stat(); err == nil && info.IsDir() {
			file.Close()
			return nil, ui.Usage("--batch %q: is a directory", o.File)
		}
		b.name, b.in, b.opened = o.File, file, file
	}

	b.bar = ui.NewBar(p, "enqueueing", filepath.Base(b.name))
	if err := b.keep(); err != nil {
		b.Close()
		return nil, err
	}

	return b, nil
}

// Close closes the input and removes the copy of a pipe.
func (b *Batch) Close() {
	if b.copied != nil {
		b.copied.Close()
		// keep could not remove the open file on Windows; elsewhere it is gone
		// already.
		os.Remove(b.copied.Name())
	}
	if b.opened != nil {
		b.opened.Close()
	}
}

// keep copies the input to a file, unless it is one.
func (b *Batch) keep() error {
	if file, ok := b.in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return nil
		}
	}

	file, err := os.CreateTemp("", "runner-batch-*")
	if err != nil {
		return fmt.Errorf("keep the batch: %w", err)
	}

	os.Remove(file.Name()) // the open file stays usable, and the system deletes it when the process ends
	b.copied = file
	if _, err := io.Copy(file, b.in); err != nil {
		return fmt.Errorf("keep the batch: %w", humanize.Reason(err))
	}

	b.in = file
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// Add adds the tasks of all lines.
func (b *Batch) Add(ctx context.Context, r *runner.Runner) ([]jobs.Enqueued, error) {
	added, err := r.EnqueueSeq(ctx, b.specs())
	if err == nil && len(added) > 0 {
		b.bar.Finish(fmt.Sprintf("%s tasks enqueued", humanize.Count(int64(len(added)))))
		return added, nil
	}
	b.bar.Clear()
	if bad, ok := errors.AsType[*LineError](err); ok {
		return nil, bad.Failure("nothing was enqueued")
	}
	return nil, err
}

// specs yields the task of each line, with the line's error in it.
func (b *Batch) specs() iter.Seq[jobs.Spec] {
	source := jsonLines(b.in)
	if b.each != nil {
		source = b.each.lines(b.in)
	}

	return func(yield func(jobs.Spec) bool) {
		n := 0
		for l := range source {
			spec, err := b.spec(l, n)
			if err != nil {
				spec = jobs.Spec{Err: &LineError{b.name, l.n, err}}
			}
			n++
			if b.bar.Step(n); !yield(spec) {
				return
			}
		}
	}
}

// spec makes the task of a line. n is its position in the batch.
func (b *Batch) spec(l line, n int) (s jobs.Spec, err error) {
	var names lineNames
	switch {
	case l.err != nil:
		return s, l.err
	case b.each != nil:
		s = b.lines.defaults()
		if err = b.each.fill(&s, string(l.text)); err == nil {
			err = b.lines.complete(&s)
		}
	default:
		s, names, err = b.lines.spec(l.text)
	}

	if err != nil {
		return s, err
	}
	if s.DependsOnEarlier, err = b.positions("after", names.after); err != nil {
		return s, err
	}
	if s.DependsOnAnyEarlier, err = b.positions("after_any", names.afterAny); err != nil {
		return s, err
	}
	if _, known := b.ids[names.id]; known {
		n = ambiguous
	}
	if names.id != "" {
		b.ids[names.id] = n
	}

	return s, taskspec.Validate(&s)
}

const ambiguous = -1 // the position for an id of two lines

// positions returns where the tasks of earlier lines are.
func (b *Batch) positions(field string, names []string) (list []int, err error) {
	for _, name := range names {
		at, known := b.ids[name]
		switch {
		case !known:
			return nil, &jobs.FieldError{Field: field, Msg: taskspec.Short([]byte(name)) + " is not the id of an earlier line"}
		case at == ambiguous:
			return nil, &jobs.FieldError{Field: field, Msg: taskspec.Short([]byte(name)) + " is the id of two earlier lines"}
		}

		list = append(list, at)
	}
	return list, nil
}

// ID returns the id of the batch that EnqueueSeq has created, or 0 if it added
// no task.
func ID(added []jobs.Enqueued) int64 {
	i := slices.IndexFunc(added, func(one jobs.Enqueued) bool { return !one.Kept && !one.Replaced })
	if i < 0 {
		return 0
	}
	return added[i].ID
}

// Print prints the added tasks, in the order of the lines. With --each it
// prints only the id of the batch, if it has one. Without records, --json
// prints nothing.
func (b *Batch) Print(ctx context.Context, r *runner.Runner, added []jobs.Enqueued, records bool) error {
	ids := ui.Records(added, func(one jobs.Enqueued) int64 { return one.ID })
	if b.each != nil {
		ids = slices.DeleteFunc([]int64{ID(added)}, func(id int64) bool { return id == 0 })
	}
	if !records {
		added = nil
	}
	return PrintEnqueued(ctx, r, b.p, added, ids...)
}

// LineError is the error of one line of a batch.
type LineError struct {
	File string // name of the batch file
	Line int    // number of the line, from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

func (e *LineError) Failure(why ...string) *ui.Error {
	f := &ui.Error{Code: "usage", Exit: 1, What: e.Error(), Why: why, Cause: e.Err}
	switch start, ok := errors.AsType[*ui.Error](e.Err); {
	case ok:
		f.What = fmt.Sprintf("%s:%d: %s", e.File, e.Line, start.What)
		f.Code, f.Why, f.Try = start.Code, append(slices.Clone(start.Why), why...), start.Try
	case errors.Is(e.Err, errFinished):
		f.Try = "runner list -s unfinished ..., or jq -c 'del(.state)'"
	}

	return f
}
