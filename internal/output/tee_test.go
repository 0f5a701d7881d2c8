package output

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"example.com/runner/internal/logging"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

func TestTeeWritesWholeLinesBehindIDs(t *testing.T) {
	var out, talk bytes.Buffer
	tee := NewTee(&out, &talk, true, slog.New(slog.DiscardHandler))
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
			data[i] = '!' // the caller reuses the buffer
		}
	}
	if want := "[7] a\n[7] b\n[1041] frame 1\n[1041] \n[7] c\n[1041] last\n"; out.String() != want {
		t.Errorf("got %q, want out.String() = want", &out)
	}
	if talk.String() != "[1041] oops\n" {
		t.Errorf(`got %q, want talk.String() = "[1041] oops\n"`, &talk)
	}
	if len(tee.begun) != 0 {
		t.Errorf("got %+v, want len(tee.begun) = 0", tee.begun)
	}
}

func TestTeeAloneIsRaw(t *testing.T) {
	var out bytes.Buffer
	tee := NewTee(&out, &out, false, slog.New(slog.DiscardHandler))
	for _, data := range []string{"a\x00\r", "b", ""} {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte(data))
	}
	if out.String() != "a\x00\rb" {
		t.Errorf(`got %q, want out.String() = "a\x00\rb"`, &out)
	}
}

func TestTeeHoldsBackNoMoreThanALongLine(t *testing.T) {
	var out bytes.Buffer
	tee := NewTee(&out, &out, true, slog.New(slog.DiscardHandler))
	for range 300 {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte(strings.Repeat("x", 1000)))
	}
	tee.Copy(jobs.Task{ID: 1}, "stdout", nil)
	if n := strings.Count(out.String(), "x"); n != 300_000 || cap(tee.begun[teeSource{id: 1, stream: "stdout"}]) > 2*teeLine {
		t.Error(n, "of 300000 arrived")
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > teeLine+2000 || !strings.HasPrefix(line, "[1] x") {
			t.Errorf("%d bytes: %.20s", len(line), line)
		}
	}
}

type closedPipe struct{ tries int }

func (c *closedPipe) Write([]byte) (int, error) { c.tries++; return 0, errors.New("broken pipe") }

func TestTeeOutlivesItsReader(t *testing.T) {
	var log bytes.Buffer
	pipe := &closedPipe{}
	tee := NewTee(pipe, pipe, true, logging.New(term.Stream{Writer: &log}, logging.Journal, slog.LevelInfo))
	for range 3 {
		tee.Copy(jobs.Task{ID: 1}, "stdout", []byte("line\n"))
	}
	if pipe.tries != 1 || strings.Count(log.String(), "<4>cannot copy output: copying ends") != 1 {
		t.Errorf(`got %+v, %+v; want pipe.tries = 1, Count(log.String(), "<4>cannot copy output: copying ends") = 1`, pipe.tries, log.String())
	}
}
