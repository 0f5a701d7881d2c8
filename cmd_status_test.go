package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"example.com/runner/internal/term/termtest"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/runner"
)

// TestStatusWithFollowDrawsAtOnceAndStops checks that --follow draws the status immediately and stops when its context ends.
func TestStatusWithFollowDrawsAtOnceAndStops(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.Normal})
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	p := termtest.To(80, writerFunc(func(data []byte) (int, error) { cancel(); return out.Write(data) }), io.Discard)
	if err := runStatus(ctx, r, p, statusOptions{follow: true}); err != nil {
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
