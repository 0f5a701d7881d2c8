package output

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// LogPrinter prints the output of tasks: unchanged, or with Named or Timestamps
// line by line with a prefix.
type LogPrinter struct {
	P          *ui.Printer
	Named      bool // whether each line begins with the id of its task
	Timestamps bool
	Follow     bool      // whether the caller follows the output; LogPrinter then also reports retries
	Since      time.Time // skip pieces that are older than this time; if it is zero, skip nothing

	Obstacles *Obstacles // says why the followed tasks don't run; may be nil

	Log *slog.Logger // gets a warning when Copy cannot print; may be nil

	mu   sync.Mutex     // between Tee, Copy and Follow; protects the fields below, and what they print
	teed map[int64]bool // generations of the attempts whose output Tee prints
	err  error          // of Tee or Copy

	missing bool                  // whether some of the output could not be printed
	shields map[string]*ui.Shield // by the name of the stream
	lines   humanize.Splitter[lineOf]
}

type lineOf struct {
	id     int64
	stream string
}

// Tee is Copy for a task that is also followed: Follow doesn't print the
// attempt again.
func (s *LogPrinter) Tee(t jobs.Task, stream string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.teed == nil {
		s.teed = map[int64]bool{}
	}
	s.teed[t.GenerationID] = true
	s.copy(t, stream, data)
}

// Copy prints output of a worker in this process, for
// commands.Options.Tee. Empty data means that the stream has ended.
func (s *LogPrinter) Copy(t jobs.Task, stream string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copy(t, stream, data)
}

func (s *LogPrinter) copy(t jobs.Task, stream string, data []byte) {
	if s.err != nil {
		return
	}

	var err error
	if len(data) > 0 {
		err = s.piece(t, admin.Chunk{Stream: admin.Stream(stream), Data: data}, 0)
	} else {
		err = cmp.Or(s.endLine(lineOf{t.ID, stream}), s.endShield(stream))
	}
	if s.err = cmp.Or(err, s.P.Flush()); s.err != nil && s.Log != nil {
		s.Log.Warn("cannot copy output: copying ends", "stream", stream, "err", s.err)
	}
}

// unknown stands for an unknown number of bytes.
const unknown = -1

// piece prints a piece of a task's output; missing bytes are missing before it.
func (s *LogPrinter) piece(t jobs.Task, c admin.Chunk, missing int64) error {
	switch {
	case c.At.Before(s.Since):
		return nil
	case s.P.JSON:
		return s.P.Record(ui.NewChunk(c))
	case missing != 0:
		if err := s.gap(t, missing); err != nil {
			return err
		}
	}

	if !s.Named && !s.Timestamps {
		return s.write(string(c.Stream), c.Data)
	}

	key := lineOf{t.ID, string(c.Stream)}
	for _, line := range s.lines.Add(key, c.At, c.Data) {
		if err := s.line(key, line); err != nil {
			return err
		}
	}

	return nil
}

// line prints a line, and adds a newline if it's incomplete.
func (s *LogPrinter) line(key lineOf, line humanize.Line) error {
	prefix := s.prefix(key)
	if s.Timestamps {
		prefix += line.At.Local().Format(ui.StampLayout) + " "
	}
	return s.write(key.stream, append([]byte(prefix), line.Ended()...))
}

// endLine prints the incomplete line of a stream.
func (s *LogPrinter) endLine(key lineOf) error {
	if line := s.lines.End(key); line != nil {
		return s.line(key, *line)
	}
	return nil
}

// prefix returns what begins each line of a task.
func (s *LogPrinter) prefix(key lineOf) string {
	if !s.Named {
		return ""
	}
	c := []ui.Colour{"31", "36", "33", "32", "35", "34"}[key.id%6]
	to := s.P.Stdout
	if key.stream != "stdout" {
		to = s.P.Stderr
	}
	return to.Paint(c, fmt.Sprintf("[%d]", key.id)) + " "
}

// gap reports on stderr that a part of the output is missing.
func (s *LogPrinter) gap(t jobs.Task, missing int64) error {
	s.missing = true
	if err := s.EndLines(t); err != nil {
		return err
	}

	what := "some output"
	if missing != unknown {
		what = humanize.Size(missing)
	}

	limit := "--output-limit"
	// The default stands for the worker's --output-limit, which this process
	// doesn't know.
	if t.OutputLimit != taskspec.DefaultOutputLimit {
		limit += " " + humanize.ExactSize(t.OutputLimit)
	}

	text := s.prefix(lineOf{t.ID, "stderr"}) + fmt.Sprintf("--- %s not kept (%s) ---\n", what, limit)
	return s.write("stderr", []byte(text))
}

func (s *LogPrinter) EndLines(t jobs.Task) error {
	for _, stream := range []string{"stdout", "stderr"} {
		if err := s.endLine(lineOf{t.ID, stream}); err != nil {
			return err
		}
	}
	return nil
}

// Finish prints the incomplete lines of all tasks.
func (s *LogPrinter) Finish() error {
	keys := s.lines.Partials()
	slices.SortFunc(keys, func(a, b lineOf) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.stream, b.stream)) })
	for _, key := range keys {
		if err := s.endLine(key); err != nil {
			return err
		}
	}

	return cmp.Or(s.endShield("stdout"), s.endShield("stderr"), s.P.Flush())
}

// endShield prints what the shield of a terminal has kept back.
func (s *LogPrinter) endShield(stream string) error {
	if shield := s.shields[stream]; shield != nil {
		return s.writeTo(stream, shield.End())
	}
	return nil
}

// end finishes an attempt's output, of which shown bytes were printed. more
// means that another attempt follows.
func (s *LogPrinter) end(t jobs.Task, a admin.Attempt, shown int64, more bool) error {
	if s.P.JSON {
		return nil
	}

	if err := s.EndLines(t); err != nil {
		return err
	}

	if shown == 0 && a.OutputBytes > 0 && !a.FinishedAt.Before(s.Since) {
		if err := s.gap(t, a.OutputBytes); err != nil {
			return err
		}
	}

	if s.Follow && more && a.State == jobs.Failed {
		next := ""
		if t.State == jobs.Retrying && a.Number == t.Attempt {
			next = "; next in " + humanize.Took(t.RunAt.Sub(s.P.Now()))
		}
		s.P.Note("attempt %d of %d of task %d failed: %s%s", a.Number, t.MaxAttempts, t.ID, FirstLine(a.Error), next)
	}

	return nil
}

// Complete returns err, or another error if some output is missing: a script
// must not mistake what runner run prints for the whole output.
func (s *LogPrinter) Complete(err error) error {
	if !s.missing {
		return err
	}
	return &ui.Error{Code: "missing_output", Exit: NoResult, What: "some output of the task is missing",
		Why: []string{"the worker stores only the beginning and the end of an output that is longer than --output-limit"},
		Try: "a larger --output-limit, or runner run"}
}

// write writes a task's data to stdout or stderr, unchanged except on a
// terminal.
func (s *LogPrinter) write(stream string, data []byte) error {
	if s.isTerminal(stream) {
		if s.shields == nil {
			s.shields = map[string]*ui.Shield{"stdout": {}, "stderr": {}}
		}
		data = s.shields[stream].Escape(data)
	}
	return s.writeTo(stream, data)
}

func (s *LogPrinter) isTerminal(stream string) bool {
	return stream == "stdout" && s.P.Stdout.TTY || stream == "stderr" && s.P.Stderr.TTY
}

func (s *LogPrinter) writeTo(stream string, data []byte) error {
	if stream == "stdout" {
		_, err := s.P.Write(data)
		return err
	}
	if err := s.P.Flush(); err != nil {
		return err
	}
	_, err := s.P.Stderr.Write(data)
	return err
}
