package output

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"example.com/runner/jobs"
)

// teeLine is the longest incomplete line that is buffered, in bytes. A longer line is written in parts, as if they were lines.
const teeLine = 64 << 10

// Tee copies the output of commands to runner's own stdout and stderr, byte for byte. If several commands run at once, it writes whole
// lines with the task's id before each.
type Tee struct {
	to  map[string]io.Writer // writer of each stream
	log *slog.Logger

	mu     sync.Mutex
	begun  map[teeSource][]byte // incomplete lines; nil if lines are not kept apart
	failed bool                 // a write has failed, so nothing more is copied; tasks continue
}

type teeSource struct {
	id, generation int64
	stream         string
}

func NewTee(stdout, stderr io.Writer, prefixed bool, log *slog.Logger) *Tee {
	t := &Tee{to: map[string]io.Writer{"stdout": stdout, "stderr": stderr}, log: log}
	if prefixed {
		t.begun = map[teeSource][]byte{}
	}
	return t
}

// Copy implements runner.CommandOptions.Tee. Empty data means that the stream has ended.
func (t *Tee) Copy(task jobs.Task, stream string, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun == nil {
		t.write(stream, data)
		return
	}
	source := teeSource{task.ID, task.GenerationID, stream}
	text := append(t.begun[source], data...)
	whole := bytes.LastIndexByte(text, '\n') + 1
	var out bytes.Buffer
	for line := range bytes.Lines(text[:whole]) {
		fmt.Fprintf(&out, "[%d] %s", task.ID, line)
	}
	rest := text[whole:]
	if len(rest) > teeLine || len(data) == 0 && len(rest) > 0 {
		fmt.Fprintf(&out, "[%d] %s\n", task.ID, rest)
		rest = nil
	}
	if t.begun[source] = bytes.Clone(rest); len(data) == 0 {
		delete(t.begun, source)
	}
	t.write(stream, out.Bytes())
}

func (t *Tee) write(stream string, data []byte) {
	if len(data) == 0 || t.failed {
		return
	}
	if _, err := t.to[stream].Write(data); err != nil {
		t.failed = true
		t.log.Warn("cannot copy output: copying ends", "stream", stream, "err", err)
	}
}
