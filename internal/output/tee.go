package output

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"example.com/runner/internal/lines"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// Tee copies the output of commands to runner's own stdout and stderr. If only one command runs at a time, it copies the bytes unchanged,
// except to a terminal. If several may run at the same time, it writes whole lines, each with the id of its task.
type Tee struct {
	to      map[string]io.Writer    // stdout and stderr, by the name of the stream
	shields map[string]*term.Shield // of the streams that are terminals
	log     *slog.Logger

	mu     sync.Mutex
	lines  *lines.Splitter[teeSource] // joins the pieces of output into lines; nil if Tee copies the bytes unchanged
	failed bool                       // whether a write has failed; Tee then copies nothing more
}

type teeSource struct {
	id, generation int64
	stream         string
}

func NewTee(stdout, stderr term.Stream, prefixed bool, log *slog.Logger) *Tee {
	t := &Tee{to: map[string]io.Writer{"stdout": stdout, "stderr": stderr}, shields: map[string]*term.Shield{}, log: log}
	if stdout.TTY {
		t.shields["stdout"] = &term.Shield{}
	}
	if stderr.TTY {
		t.shields["stderr"] = &term.Shield{}
	}
	if prefixed {
		t.lines = &lines.Splitter[teeSource]{}
	}
	return t
}

// Copy is a function for runner.CommandOptions.Tee. Empty data means that the stream has ended.
func (t *Tee) Copy(task jobs.Task, stream string, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines == nil {
		if shield := t.shields[stream]; shield != nil && len(data) == 0 {
			t.writeTo(stream, shield.End())
		}
		t.write(stream, data)
		return
	}
	source := teeSource{task.ID, task.GenerationID, stream}
	list := t.lines.Add(source, time.Time{}, data)
	if len(data) == 0 {
		if line := t.lines.End(source); line != nil {
			list = append(list, *line)
		}
	}
	var out bytes.Buffer
	for _, line := range list {
		fmt.Fprintf(&out, "[%d] %s", task.ID, line.Ended())
	}
	t.write(stream, out.Bytes())
}

func (t *Tee) write(stream string, data []byte) {
	if shield := t.shields[stream]; shield != nil {
		data = shield.Escape(data)
	}
	t.writeTo(stream, data)
}

func (t *Tee) writeTo(stream string, data []byte) {
	if len(data) == 0 || t.failed {
		return
	}
	if _, err := t.to[stream].Write(data); err != nil {
		t.failed = true
		t.log.Warn("cannot copy output: copying ends", "stream", stream, "err", err)
	}
}
