package exec

import (
	"bytes"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// TestOutputThatIsReadLateIsKept checks that this process keeps all output that
// a command has printed before its end, even if it reads the pipe late.
func TestOutputThatIsReadLateIsKept(t *testing.T) {
	c := NewCapture(jobs.Task{Options: jobs.NewSpec("").Options}, nil, nil)
	c.stop = make(chan struct{}) // with stop set, the Capture starts no flusher, and so stores nothing
	reading, goOn := make(chan struct{}), make(chan struct{})
	first := true
	c.Tee = func(jobs.Task, string, []byte) {
		if first {
			first = false
			close(reading)
			<-goOn
		}
	}
	w, err := c.pipe("stdout")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("begins\n"); err != nil {
		t.Fatal(err)
	}
	<-reading
	rest := bytes.Repeat([]byte("x"), 48<<10) // these bytes need more than one piece
	if _, err := w.Write(rest); err != nil {
		t.Fatal(err)
	}
	escaped, err := c.pipe("stderr") // this pipe stays open, as if a process outlived the command; drain must not wait for it to close
	if err != nil {
		t.Fatal(err)
	}
	defer escaped.Close()
	w.Close()
	go func() {
		time.Sleep(3 * lingerAfter)
		close(goOn)
	}()
	c.drain()
	if total, _ := c.Sizes(); total != int64(len("begins\n")+len(rest)) {
		t.Errorf("got %d bytes of output, want %d", total, len("begins\n")+len(rest))
	}
}
