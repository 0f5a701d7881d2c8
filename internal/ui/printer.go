package ui

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"example.com/runner/internal/humanize"
)

// Printer writes answers to stdout and messages to stderr. It isn't safe for
// concurrent use.
type Printer struct {
	Stdout, Stderr Stream
	buffered       *bufio.Writer // buffer for Stdout; Flush empties it
	in             *bufio.Reader
	CanAsk         bool               // whether stdin and stderr are terminals: a user can answer Confirm
	JSON           bool               // whether --json was given
	Format         func(Record) error // prints a record with the template of --format; nil if it was not given
	Verbose        bool               // whether --verbose was given
	Now            func() time.Time   // returns the current time
}

// Stream is stdout or stderr.
type Stream struct {
	io.Writer
	TTY    bool // whether the stream is a terminal
	Width  int  // number of columns; 80 if the stream is not a terminal
	Height int  // number of rows; 0 if unknown
	Colour bool // whether to write colours
}

// Settings are what New needs: the streams and the environment of the process,
// and some options.
type Settings struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	JSON, Verbose  bool
	Color          string // value of --color; empty means auto
}

// New returns a printer. It reads RUNNER_FORCE_TTY, NO_COLOR and
// CLICOLOR_FORCE.
func New(o Settings) *Printer {
	forced, _ := strconv.Atoi(o.Getenv("RUNNER_FORCE_TTY"))
	p := &Printer{JSON: o.JSON, Verbose: o.Verbose, Now: o.Now}
	p.Stdout = newStream(o.Stdout, forced, o.Color, o.Getenv)
	p.Stderr = newStream(o.Stderr, forced, o.Color, o.Getenv)
	p.buffered, p.in = bufio.NewWriter(p.Stdout), bufio.NewReader(o.Stdin)
	p.CanAsk = IsTerminal(o.Stdin) && p.Stderr.TTY
	return p
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// newStream returns a Stream for w. forced above 0 makes it a terminal with
// this many columns, for tests and the generated docs.
func newStream(w io.Writer, forced int, color string, getenv func(string) string) Stream {
	s := Stream{Writer: w, Width: 80}
	if forced > 0 {
		s.TTY, s.Width = true, forced
	} else if s.TTY = IsTerminal(w); s.TTY {
		s.Resize()
	}

	switch force := getenv("CLICOLOR_FORCE"); {
	case color == "always" || color == "never":
		s.Colour = color == "always"
	case getenv("NO_COLOR") != "":
	case force != "" && force != "0":
		s.Colour = true
	default:
		s.Colour = s.TTY && getenv("TERM") != "dumb"
	}

	return s
}

// Resize reads the terminal's size again: the user may have resized the window.
func (s *Stream) Resize() {
	if f, ok := s.Writer.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			s.Width, s.Height = columns, rows
		}
	}
}

// ForPeople reports whether a person reads stdout.
func (p *Printer) ForPeople() bool { return p.Stdout.TTY && !p.JSON && p.Format == nil }

// Interactive reports whether a person reads stdout and stderr.
func (p *Printer) Interactive() bool { return p.ForPeople() && p.Stderr.TTY }

// Print writes text to stdout.
func (p *Printer) Print(text string) { p.buffered.WriteString(text) }

// Write writes bytes to stdout unchanged.
func (p *Printer) Write(data []byte) (int, error) { return p.buffered.Write(data) }

// Capture returns what draw prints to stdout, in place of printing it.
func (p *Printer) Capture(draw func(*Printer)) string {
	var text strings.Builder
	other := *p
	other.buffered = bufio.NewWriter(&text)
	draw(&other)
	other.Flush()
	return text.String()
}

// Fields writes a line for other programs: complete values, separated by tabs.
// Inside a value, tabs, newlines and backslashes become \t, \n and \\.
func (p *Printer) Fields(values ...any) {
	for i, v := range values {
		if i > 0 {
			p.buffered.WriteByte('\t')
		}
		p.buffered.WriteString(humanize.Safe(strings.ReplaceAll(Text(v), `\`, `\\`)))
	}
	p.buffered.WriteByte('\n')
}

// Record writes v to stdout as one line of JSON.
func (p *Printer) Record(v any) error { return WriteJSON(p.buffered, v) }

// WriteJSON writes v as a line of JSON. Characters that could control a
// terminal become JSON escapes, which mean the same.
func WriteJSON(w io.Writer, v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := io.WriteString(w, EscapeJSON(line.String()))
	return err
}

// AnswerWith makes Confirm read its answers from r, for tests.
func (p *Printer) AnswerWith(r io.Reader) { p.CanAsk, p.in = true, bufio.NewReader(r) }

// Flush writes the buffered output to stdout.
func (p *Printer) Flush() error { return p.buffered.Flush() }

// Say writes a line to stderr.
func (p *Printer) Say(format string, args ...any) {
	p.Flush() // print stdout first, because both streams may go to the same terminal
	fmt.Fprintln(p.Stderr, humanize.Safe(fmt.Sprintf(format, args...)))
}

// Tell writes a line to stderr, but not with --json: the records and the error
// then say the same.
func (p *Printer) Tell(format string, args ...any) {
	if !p.JSON {
		p.Say(format, args...)
	}
}

// Note writes a line to stderr if a person reads it; see Interactive.
func (p *Printer) Note(format string, args ...any) {
	if p.Interactive() {
		p.Say(format, args...)
	}
}

// Detail writes a line to stderr if --verbose was given.
func (p *Printer) Detail(format string, args ...any) {
	if p.Verbose {
		p.Say(format, args...)
	}
}

// Confirm asks the user a question; an empty answer means no. Call it only if
// CanAsk is set.
func (p *Printer) Confirm(format string, args ...any) bool {
	p.Flush()
	fmt.Fprint(p.Stderr, humanize.Safe(fmt.Sprintf(format, args...)), " [y/N] ")
	answer, _ := p.in.ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
