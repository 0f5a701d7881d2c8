package exec

import (
	"os"
	"sync"
	"time"

	"example.com/runner/internal/supervisor"
	"example.com/runner/internal/usercode"
)

// lingerAfter is how long drain waits for a process that still holds a pipe
// after the end of the command.
const lingerAfter = 100 * time.Millisecond

var buffers = sync.Pool{New: func() any { return new([maxPiece]byte) }}

// pipe returns the writing end of a pipe. All data that comes through it is
// captured as output of the given stream.
func (c *Capture) pipe(stream string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}

	c.pipes = append(c.pipes, r)
	c.readers.Go(func() {
		defer r.Close()
		defer c.tee(stream, nil)

		buffer := buffers.Get().(*[maxPiece]byte)
		defer buffers.Put(buffer)

		err := supervisor.ReadPipe(r, buffer[:], func(data []byte) {
			c.tee(stream, data)
			c.Write(stream, data)
		})
		if err != nil {
			c.log.Warn("cannot read output", "task", c.task.ID, "err", err)
		}
	})
	return w, nil
}

// tee calls Tee. After a panic of Tee it calls it no more for this attempt.
func (c *Capture) tee(stream string, data []byte) {
	if c.Tee == nil || c.teeFailed.Load() {
		return
	}
	if p := usercode.Call(func() { c.Tee(c.task, stream, data) }); p != nil && !c.teeFailed.Swap(true) {
		c.log.Error("the function Tee does not return; it gets no more output of this task",
			append([]any{"task", c.task.ID}, usercode.LogArgs(p)...)...)
	}
}

// drain waits until all output of a command that has ended is captured. A
// process that outlives the command may still hold a pipe; drain waits only
// lingerAfter for it.
func (c *Capture) drain() {
	for _, pipe := range c.pipes {
		_ = pipe.SetReadDeadline(now().Add(lingerAfter)) // fails if pipes have no deadlines here; then we wait for their end
	}
	c.readers.Wait()
}
