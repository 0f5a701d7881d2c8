package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestStatusWithFollowDrawsAtOnceAndStops checks that --follow draws the status
// immediately and stops when its context ends.
func TestStatusWithFollowDrawsAtOnceAndStops(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	p := termtest.To(80, writerFunc(func(data []byte) (int, error) { cancel(); return out.Write(data) }), io.Discard)
	o := statusOptions{follow: true}
	if err := o.run(ctx, r, p); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[H✗ no worker"
	testkit.Equal(t, "number of drawings", strings.Count(out.String(), want), 1)
	if !strings.HasPrefix(out.String(), want) || !strings.HasSuffix(out.String(), "\x1b[K\n\x1b[J") {
		t.Errorf("got %q, want it to begin with %q and to clear the rest of the screen", out.String(), want)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

// TestStatusWithFollowFitsTerminal checks that the output of --follow fits the
// size of the terminal.
func TestStatusWithFollowFitsTerminal(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	for i := range 30 {
		spec := jobs.Command(command.Command{Argv: []string{"true"}}, jobs.Queue(fmt.Sprintf("queue-with-a-long-name-%d", i)))
		if _, err := r.EnqueueMany(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	for _, columns := range []int{40, 120} {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		p := termtest.To(columns, writerFunc(func(data []byte) (int, error) { cancel(); return out.Write(data) }), io.Discard)
		p.Stdout.Height = 12
		o := statusOptions{follow: true}
		if err := o.run(ctx, r, p); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n\x1b[J"), "\n")
		testkit.Equal(t, "number of lines", len(lines), 11)
		for _, line := range lines {
			line = strings.TrimSuffix(strings.TrimPrefix(line, "\x1b[H"), "\x1b[K")
			if ui.Cells(line) > columns {
				t.Errorf("got line %q with %d cells, want at most %d", line, ui.Cells(line), columns)
			}
		}
	}
}
