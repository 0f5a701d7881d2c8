package output

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// teeTo returns a printer for the output of a worker that prints to these
// streams.
func teeTo(stdout, stderr ui.Stream, named bool) *LogPrinter {
	p := ui.New(ui.Settings{Stdout: stdout, Stdin: strings.NewReader(""), Getenv: func(string) string { return "" }})
	p.Stdout.TTY, p.Stderr = stdout.TTY, stderr
	return &LogPrinter{P: p, Named: named}
}

func TestTeeWritesWholeLinesAfterID(t *testing.T) {
	var out, talk bytes.Buffer
	tee := teeTo(ui.Stream{Writer: &out}, ui.Stream{Writer: &talk}, true)
	one, two := jobs.Task{ID: 1041, GenerationID: 2}, jobs.Task{ID: 7, GenerationID: 5}
	for _, piece := range []struct {
		task   jobs.Task
		stream string
		data   string
	}{
		{one, "stdout", "fra"}, {two, "stdout", "a\nb\nc"}, {one, "stderr", "oops\n"}, {one, "stdout", "me 1\n\nlast"}, {two, "stdout", ""},
		{one, "stdout", ""},
		{one, "stderr", ""}, {two, "stderr", ""},
	} {
		data := []byte(piece.data)
		tee.Copy(piece.task, piece.stream, data)
		for i := range data {
			data[i] = '!' // overwrite the buffer, because the worker reuses it after Copy has returned
		}
	}
	testkit.Equal(t, "stdout", out.String(), "[7] a\n[7] b\n[1041] frame 1\n[1041] \n[7] c\n[1041] last\n")
	testkit.Equal(t, "stderr", talk.String(), "[1041] oops\n")
	testkit.Equal(t, "number of unfinished lines", len(tee.lines.Partials()), 0)
}

func TestTeeOfOneSlotCopiesBytesUnchanged(t *testing.T) {
	var out bytes.Buffer
	tee := teeTo(ui.Stream{Writer: &out}, ui.Stream{Writer: &out}, false)
	for _, data := range []string{"a\x00\r", "b", ""} {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte(data))
	}
	testkit.Equal(t, "stdout", out.String(), "a\x00\rb")
}

func TestTeeEscapesOnTerminals(t *testing.T) {
	var out, pipe bytes.Buffer
	tee := teeTo(ui.Stream{Writer: &out, TTY: true}, ui.Stream{Writer: &pipe}, false)
	for _, data := range []string{"a\x00\r\x1b[1", "mb\x1b", ""} {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte(data))
		tee.Copy(jobs.Task{ID: 1}, "stderr", []byte(data))
	}
	testkit.Equal(t, "stdout", out.String(), `a\x00`+"\r\x1b[1mb"+`\x1b`)
	testkit.Equal(t, "stderr", pipe.String(), "a\x00\r\x1b[1mb\x1b")
}

func TestTeeBuffersAtMostOneLongLine(t *testing.T) {
	var out bytes.Buffer
	tee := teeTo(ui.Stream{Writer: &out}, ui.Stream{Writer: &out}, true)
	for range 300 {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte(strings.Repeat("x", 1000)))
	}
	tee.Copy(jobs.Task{ID: 1}, "stdout", nil)
	const longest = 64<<10 + 2000
	if n, partial := strings.Count(out.String(), "x"), tee.lines.Partials(); n != 300_000 || len(partial) > 0 {
		t.Errorf("got %d of 300000 bytes and incomplete lines of %+v, want all bytes and none", n, partial)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > longest || !strings.HasPrefix(line, "[1] x") {
			t.Errorf("got a line of %d bytes, %.20q; want at most %d that begin with the id", len(line), line, longest)
		}
	}
}

type closedPipe struct{ tries int }

func (c *closedPipe) Write([]byte) (int, error) { c.tries++; return 0, errors.New("broken pipe") }

func TestTeeContinuesWithoutItsReader(t *testing.T) {
	var log bytes.Buffer
	pipe := &closedPipe{}
	tee := teeTo(ui.Stream{Writer: pipe}, ui.Stream{Writer: pipe}, true)
	tee.Log = ops.NewLog(ui.Stream{Writer: &log}, ops.Journal, slog.LevelInfo)
	for range 3 {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte("line\n"))
	}
	testkit.Equal(t, "tries to write", pipe.tries, 1)
	testkit.Equal(t, "warnings in the log", strings.Count(log.String(), "<4>cannot copy output: copying ends"), 1)
}
