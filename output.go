package main

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

	"example.com/runner/internal/humanize"
	"golang.org/x/term"
)

// The rules of output:
//
//   - stdout is the answer, stderr is the talk. Nothing but the answer ever reaches stdout.
//   - An error says what, why, try: lower case, no full stop, at most five lines, and no chain of wrapped errors unless -v.
//   - Hints and notes appear only when stdout and stderr are both terminals. A cron job that succeeds is silent.
//   - On a terminal, tables fit its width. Elsewhere: tab-separated, whole, no header, no colour, times in RFC 3339.
//   - --json is JSON Lines: one object per line, every key always there. Nothing at all when there is nothing.
//   - The word carries the meaning; colour only repeats it.
//   - What a job named or printed never drives the terminal: safe() shows its control characters. Only logs, wait and
//     --tee pass a task's own output on, byte for byte.
//
// Commands print through the printer, which knows all this, and never to os.Stdout.

// printer writes answers and talk. It is for one goroutine.
type printer struct {
	out, talk stream
	answer    *bufio.Writer // in front of out; flush before anything must be seen
	in        *bufio.Reader
	asks      bool // somebody sits there who can be asked
	json      bool
	verbose   bool
	now       func() time.Time
}

// stream is stdout or stderr.
type stream struct {
	io.Writer
	tty    bool
	width  int // in cells, when it is a terminal
	colour bool
}

// Settings are what a printer is made of: the streams of the process, and what the command line and the environment ask for.
type printerSettings struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	json, verbose  bool
	color          string // value of --color; empty means auto
}

// New returns a printer. The variables RUNNER_FORCE_TTY, NO_COLOR and CLICOLOR_FORCE are respected.
func newPrinter(o printerSettings) *printer {
	forced, _ := strconv.Atoi(o.getenv("RUNNER_FORCE_TTY"))
	p := &printer{json: o.json, verbose: o.verbose, now: o.now}
	p.out = newStream(o.stdout, forced, o.color, o.getenv)
	p.talk = newStream(o.stderr, forced, o.color, o.getenv)
	p.answer, p.in = bufio.NewWriter(p.out), bufio.NewReader(o.stdin)
	p.asks = isTerminal(o.stdin) && p.talk.tty
	return p
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// newStream looks at one stream. forced makes it a terminal of that width, for tests and documents.
func newStream(w io.Writer, forced int, color string, getenv func(string) string) stream {
	s := stream{Writer: w, width: 80}
	if f, ok := w.(*os.File); ok && forced <= 0 && term.IsTerminal(int(f.Fd())) {
		s.tty = true
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			s.width = columns
		}
	}
	if forced > 0 {
		s.tty, s.width = true, forced
	}
	switch force := getenv("CLICOLOR_FORCE"); {
	case color == "always" || color == "never":
		s.colour = color == "always"
	case getenv("NO_COLOR") != "":
	case force != "" && force != "0":
		s.colour = true
	default:
		s.colour = s.tty && getenv("TERM") != "dumb"
	}
	return s
}

// measure looks again how wide the terminal is: people change that while something is drawn again and again.
func (s *stream) measure() {
	if f, ok := s.Writer.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			s.width = columns
		}
	}
}

// interactive says whether a person is looking at both streams.
func (p *printer) interactive() bool { return p.out.tty && p.talk.tty && !p.json }

// print writes text to stdout as it is.
func (p *printer) print(text string) { p.answer.WriteString(text) }

// Write writes bytes to stdout as they are. It implements io.Writer.
func (p *printer) Write(data []byte) (int, error) { return p.answer.Write(data) }

// captured returns what draw prints on stdout, which is not printed.
func (p *printer) captured(draw func(*printer)) string {
	var text strings.Builder
	other := *p
	other.answer = bufio.NewWriter(&text)
	draw(&other)
	other.flush()
	return text.String()
}

// fields writes a line for other programs: values with tabs between them, whole. A tab, newline or backslash inside one
// is \t, \n or \\.
func (p *printer) fields(values ...string) {
	for i, v := range values {
		if i > 0 {
			p.answer.WriteByte('\t')
		}
		p.answer.WriteString(humanize.Safe(strings.ReplaceAll(v, `\`, `\\`)))
	}
	p.answer.WriteByte('\n')
}

// record writes v as one line of JSON.
func (p *printer) record(v any) error { return writeJSON(p.answer, v) }

// writeJSON writes v as a line of JSON. Characters that could drive a terminal are escaped, which changes no value.
func writeJSON(w io.Writer, v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := io.WriteString(w, escapeJSON(line.String()))
	return err
}

// flush shows what was printed so far.
func (p *printer) flush() error { return p.answer.Flush() }

// say writes a line to stderr, for whoever reads it.
func (p *printer) say(format string, args ...any) {
	p.flush() // the two streams are often one terminal
	fmt.Fprintln(p.talk, humanize.Safe(fmt.Sprintf(format, args...)))
}

// note writes a line to stderr that only a person at a terminal wants.
func (p *printer) note(format string, args ...any) {
	if p.interactive() {
		p.say(format, args...)
	}
}

// detail writes a line to stderr that only -v wants.
func (p *printer) detail(format string, args ...any) {
	if p.verbose {
		p.say(format, args...)
	}
}

// confirm asks a yes/no question; no is the default. Ask only if p.asks.
func (p *printer) confirm(format string, args ...any) bool {
	p.flush()
	fmt.Fprint(p.talk, humanize.Safe(fmt.Sprintf(format, args...)), " [y/N] ")
	answer, _ := p.in.ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// colour is an SGR parameter; empty is no colour.
type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
	dim    colour = "2"
)

// paint colours a text if the stream shows colours.
func (s stream) paint(c colour, text string) string {
	if c == "" || !s.colour || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
