// Package batch reads tasks and schedules as JSON Lines, for enqueue --batch and schedule apply. It also reads lines that are arguments of
// commands, for enqueue --each.
package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Without --keep-going, Run adds all tasks in one transaction, so it first copies
// a pipe to a file: a slow one would keep the transaction open and block other
// writers.

const batchPart = 1000 // number of lines in a transaction with --keep-going

// Options say where a batch comes from and how to process it.
type Options struct {
	File      string // path of the input, or - for stdin
	Option    string // name of the option whose value is File, such as --batch; errors name it
	Each      *Each  // the commands of --each; nil if the file has JSON Lines
	Stdin     io.Reader
	Base      jobs.Spec // defaults for the fields of each line
	Caller    invocation.Invocation
	NoResolve bool                                                       // if true, only the worker looks for the program of a command
	KeepGoing bool                                                       // whether to add the valid lines and report the invalid ones
	Notes     func(context.Context, *runner.Runner, *term.Printer) error // prints notes after the tasks are added
	// Wait waits for the added tasks; nil if the caller does not wait. With --json Wait prints the records of the tasks, so Run prints
	// none.
	Wait func(context.Context, []runner.Enqueued) error
}

// Run adds the tasks of a batch.
func Run(ctx context.Context, r *runner.Runner, p *term.Printer, o Options) error {
	o.Base.Batch = jobs.NewBatch
	b, err := openBatch(p, o)
	if err != nil {
		return err
	}
	defer b.close()
	if o.KeepGoing {
		return b.keepGoing(ctx, r)
	}
	if err := b.keep(); err != nil {
		return err
	}
	b.bar.Start("enqueueing", 0)
	waiting, stop := b.untilSignal(ctx)
	defer stop()
	added, err := r.EnqueueAll(waiting, b.specs())
	if err != nil {
		b.bar.Clear()
		if s, ok := errors.AsType[signals.Received](err); ok {
			p.Say("nothing was enqueued")
			return failure.ExitStatus(s.Status())
		}
		if bad, ok := errors.AsType[*LineError](err); ok {
			return bad.Failure("nothing was enqueued")
		}
		return err
	}
	if len(added) == 0 {
		b.bar.Clear()
		return nil
	}
	b.bar.Finish(fmt.Sprintf("%s tasks enqueued", humanize.Count(int64(len(added)))))
	if err := b.print(ctx, r, added, batchOf(added)); err != nil {
		return err
	}
	b.note(batchOf(added), len(added))
	if err := o.Notes(ctx, r, p); err != nil || o.Wait == nil {
		return err
	}
	return o.Wait(waiting, added)
}

// untilSignal returns a context for adding the tasks and waiting for them. If the caller waits for the tasks, the context ends at a signal.
// Otherwise a signal ends the process. Call untilSignal only after the batch has been read: a context cannot interrupt a read from a pipe.
func (b *batch) untilSignal(ctx context.Context) (context.Context, func()) {
	if b.wait == nil {
		return ctx, func() {}
	}
	return signals.Until(ctx)
}

// batch is the input of --batch.
type batch struct {
	p      *term.Printer
	name   string
	each   *lineCommand // nil for JSON Lines
	lines  *lineReader
	ids    lineIDs
	bar    term.Bar
	in     io.Reader
	opened *os.File // the opened file; nil for stdin
	copied *os.File // copy of a pipe; nil if there is none
	wait   func(context.Context, []runner.Enqueued) error
}

func openBatch(p *term.Printer, o Options) (*batch, error) {
	b := &batch{p: p, name: o.File, lines: newLineReader(o), in: o.Stdin, wait: o.Wait, ids: lineIDs{positions: map[string]int{}}}
	if o.Each != nil {
		b.each = newLineCommand(*o.Each)
	}
	if o.File == "-" {
		b.name = "stdin"
	} else {
		file, err := os.Open(o.File)
		if err != nil {
			return nil, failure.Usage("%s %q: %v", o.Option, o.File, humanize.Reason(err))
		}
		if info, err := file.Stat(); err == nil && info.IsDir() {
			file.Close()
			return nil, failure.Usage("%s %q: is a directory", o.Option, o.File)
		}
		b.in, b.opened = file, file
	}
	b.bar = term.NewBar(p, filepath.Base(b.name))
	return b, nil
}

func (b *batch) close() {
	if b.copied != nil {
		b.copied.Close()
		// On systems such as Windows the method "keep" could not remove the file while it was open. Elsewhere the file is already removed.
		os.Remove(b.copied.Name())
	}
	if b.opened != nil {
		b.opened.Close()
	}
}

// keep copies the input to a file, unless it is one.
func (b *batch) keep() error {
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

// specs yields the task of each line, with the line's error in it.
func (b *batch) specs() iter.Seq[jobs.Spec] {
	return func(yield func(jobs.Spec) bool) {
		n := 0
		for spec, bad := range b.read() {
			if bad != nil {
				spec.Err = bad
			}
			n++
			if b.bar.Step(n); !yield(spec) {
				return
			}
		}
	}
}

// read yields the task of each line, or the line's error.
func (b *batch) read() iter.Seq2[jobs.Spec, *LineError] {
	source := jsonLines(b.in)
	if b.each != nil {
		source = b.each.lines(b.in)
	}
	return func(yield func(jobs.Spec, *LineError) bool) {
		for l := range source {
			spec, err := b.spec(l)
			var bad *LineError
			if err != nil {
				spec, bad = jobs.Spec{}, &LineError{b.name, l.n, err}
			}
			if !yield(spec, bad) {
				return
			}
		}
	}
}

// spec makes the task of a line.
func (b *batch) spec(l line) (s jobs.Spec, err error) {
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
	if err == nil {
		err = taskspec.Validate(&s)
	}
	if err == nil {
		err = b.ids.resolve(&s, names)
	}
	return s, err
}

// batchOf returns the id of the batch that EnqueueAll has created, or 0 if EnqueueAll added no task.
func batchOf(added []runner.Enqueued) int64 {
	i := slices.IndexFunc(added, func(one runner.Enqueued) bool { return !one.Kept && !one.Replaced })
	if i < 0 {
		return 0
	}
	return added[i].ID
}

// print prints the ids of the added tasks, in the order of the lines. With --each it prints only the id of the batch. If this id is
// 0, it prints nothing.
func (b *batch) print(ctx context.Context, r *runner.Runner, added []runner.Enqueued, id int64) error {
	switch {
	case b.p.JSON && b.wait != nil:
		return nil
	case b.p.JSON:
		return PrintEnqueued(ctx, r, b.p, added)
	case b.each != nil && id == 0:
		return nil
	case b.each != nil:
		added = []runner.Enqueued{{ID: id}}
	}
	for _, one := range added {
		b.p.Print(strconv.FormatInt(one.ID, 10) + "\n")
	}
	return b.p.Flush()
}

// note prints a command with which the user can follow the batch. It prints only to a terminal.
func (b *batch) note(id int64, n int) {
	if b.p.Interactive() && id != 0 && b.wait == nil {
		b.p.Note("batch %d has %s; follow: runner wait --batch %[1]d", id, humanize.Plural(n, "task"))
	}
}

// keepGoing adds the valid lines in several transactions and reports the invalid lines.
func (b *batch) keepGoing(ctx context.Context, r *runner.Runner) error {
	good, bad := 0, 0
	batch := int64(jobs.NewBatch)
	var part []jobs.Spec
	var all []runner.Enqueued // all added tasks; nil if the caller does not wait for them
	commit := func(ctx context.Context) error {
		if len(part) == 0 {
			return nil
		}
		added, err := r.EnqueueAll(ctx, slices.Values(part))
		if err != nil {
			b.bar.Clear()
			earlier := fmt.Sprintf("%s tasks of earlier lines are enqueued", humanize.Count(int64(good)))
			if s, ok := errors.AsType[signals.Received](err); ok {
				b.p.Say("%s", earlier)
				return failure.ExitStatus(s.Status())
			}
			f := failure.Explain(err)
			f.Why = append(f.Why, earlier)
			return f
		}
		good, part = good+len(added), part[:0]
		if b.wait != nil {
			all = append(all, added...)
		}
		begun := int64(0)
		if batch == jobs.NewBatch {
			if begun = batchOf(added); begun != 0 {
				batch = begun
			}
		}
		for _, one := range added {
			b.ids.done = append(b.ids.done, one.ID)
		}
		return b.print(ctx, r, added, begun)
	}
	b.bar.Start("enqueueing", 0)
	for spec, wrong := range b.read() {
		if wrong != nil {
			bad++
			b.bar.Clear()
			failure.Report(b.p, wrong.Failure())
			continue
		}
		spec.Batch = batch
		part = append(part, spec)
		if b.bar.Step(good + len(part)); len(part) == batchPart {
			if err := commit(ctx); err != nil {
				return err
			}
		}
	}
	ctx, stop := b.untilSignal(ctx)
	defer stop()
	if err := commit(ctx); err != nil {
		return err
	}
	b.bar.Finish(fmt.Sprintf("%s tasks enqueued", humanize.Count(int64(good))))
	if bad > 0 {
		b.p.Tell("%s of %s lines were not enqueued", humanize.Count(int64(bad)), humanize.Count(int64(good+bad)))
	}
	if len(all) > 0 {
		if err := b.wait(ctx, all); err != nil {
			return err
		}
	}
	if bad > 0 {
		return failure.ExitStatus(1)
	}
	return nil
}

// LineError is the error of one line of a batch.
type LineError struct {
	File string // name of the batch file
	Line int    // number of the line, from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

func (e *LineError) Failure(why ...string) *failure.Error {
	f := &failure.Error{Code: "usage", Exit: 1, What: e.Error(), Why: why, Cause: e.Err}
	switch start, ok := errors.AsType[*failure.Error](e.Err); {
	case ok:
		f.What = fmt.Sprintf("%s:%d: %s", e.File, e.Line, start.What)
		f.Code, f.Why, f.Try = start.Code, append(slices.Clone(start.Why), why...), start.Try
	case errors.Is(e.Err, errFinished):
		f.Try = "runner list -s unfinished ..., or jq -c 'del(.state)'"
	}
	return f
}
