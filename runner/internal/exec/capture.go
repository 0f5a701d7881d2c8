package exec

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/supervisor"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// A Capture keeps the first bytes of an attempt's output, which are called the head, and the last bytes, which are called the tail.
// Together they have at most OutputLimit bytes; HeadSize is the size of the head. A Capture counts and drops the bytes between head and
// tail. It stores the output as pieces, in the order in which they came. It does so while the attempt runs, so that other processes can
// follow the output. The write that ends the attempt stores the remaining pieces.
//
// The invariants:
//
//   - The pieces of the head are never dropped.
//   - The tail keeps every piece that has at least one of the last bytes. The method "trim" drops older pieces, whether they are stored or
//     not. So the stored tail may be too long by less than one piece, until Rest removes these bytes.
//   - A piece does not change while it is being written (storing).
const (
	maxPiece   = 32 << 10
	flushEvery = 100 * time.Millisecond
	floodEvery = 500 * time.Millisecond // interval of flushes after an error, or while the command prints more than the capture keeps
	// maxWaiting limits the number of bytes that are not stored yet. Write blocks while there are more. If a full tail has more bytes than
	// maxWaiting, the size of the tail is the limit instead.
	maxWaiting = 2 << 20

	// lingerAfter is the time that drain waits for a process that still holds a pipe after the end of the command.
	lingerAfter = 100 * time.Millisecond

	maxErrorLine = 200     // greatest length of the result of ErrorLine, in bytes
	lastBytes    = 1 << 10 // number of bytes at the end of a stream in which ErrorLine looks for a line
)

// OutputWriter stores pieces of output. *db.Worker is one.
type OutputWriter interface {
	WriteOutput(ctx context.Context, task jobs.Task, output db.Output) error
}

// Capture collects the output of one attempt. Its methods are safe for use by many goroutines.
type Capture struct {
	task   jobs.Task
	writer OutputWriter
	log    *slog.Logger
	tail   int64 // greatest number of bytes in the tail

	// Tee is called with the data that comes through pipes, and with nil at the end of a stream. Set it before the command starts.
	Tee       func(task jobs.Task, stream string, data []byte)
	teeFailed atomic.Bool // whether Tee has panicked

	readers sync.WaitGroup
	pipes   []*os.File // read ends of the pipes

	mu       sync.Mutex
	room     sync.Cond // wakes blocked calls of Write when the number of unstored bytes decreases
	head     int64     // number of bytes that still fit into the head
	total    int64     // bytes printed
	seq      int64     // number of the newest piece
	pieces   []piece   // pieces in order: those of the head that are not stored yet, and all pieces of the tail
	tailSize int64     // bytes of all pieces of the tail
	tailFrom int64     // number of the first piece that was ever in the tail; 0 before the tail begins
	forget   int64     // the next write deletes the stored pieces of the tail with a lower number than this; 0 to delete none
	dropped  int64     // bytes between head and tail, which are not kept
	waiting  int64     // bytes that are not yet stored
	last     [2][]byte // last bytes of stderr and of stdout, in which ErrorLine looks for a line

	flusher sync.WaitGroup
	stop    chan struct{} // closed to end the flusher; nil if no flusher runs
	closed  bool
}

// piece is a part of the output that is stored as one row.
type piece struct {
	seq     int64
	stream  string
	at      time.Time
	size    int64
	data    []byte // nil after the piece is stored
	isTail  bool
	storing bool // whether a write of this piece is in progress
}

// NewCapture returns a Capture of the output of an attempt of task.
func NewCapture(task jobs.Task, writer OutputWriter, log *slog.Logger) *Capture {
	head := taskspec.HeadSize(task.OutputLimit)
	c := &Capture{task: task, writer: writer, log: log, head: head, tail: task.OutputLimit - head}
	c.room.L = &c.mu
	return c
}

// ClosedCapture returns a Capture without output. It drops all data.
func ClosedCapture() *Capture {
	c := NewCapture(jobs.Task{}, nil, nil)
	c.closed = true
	return c
}

var buffers = sync.Pool{New: func() any { return new([maxPiece]byte) }}

// pipe returns the writing end of a pipe. It captures all data from the pipe as output of the given stream.
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

// drain waits until this process has read and captured all output of the command. Call it after the end of the command. A process that
// outlives the command may still hold a pipe; drain waits only lingerAfter for it.
func (c *Capture) drain() {
	for _, pipe := range c.pipes {
		_ = pipe.SetReadDeadline(now().Add(lingerAfter)) // fails if pipes have no deadlines on this system; drain then waits for their end
	}
	c.readers.Wait()
}

// Write captures data as output of the given stream. After Close it drops the data.
func (c *Capture) Write(stream string, data []byte) {
	at := now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting > maxWaiting && c.waiting > c.tail && !c.closed {
		c.room.Wait()
	}
	if c.closed {
		return
	}
	c.total += int64(len(data))
	c.remember(stream, data)
	if n := min(c.head, int64(len(data))); n > 0 {
		c.add(stream, at, data[:n], false)
		c.head -= n
		data = data[n:]
	}
	if len(data) > 0 {
		c.add(stream, at, data, true)
		c.trim()
	}
	if c.stop == nil && len(c.pieces) > 0 {
		stop := make(chan struct{})
		c.stop = stop
		c.flusher.Go(func() { c.flush(stop) })
	}
}

// add appends data to the newest piece, or begins a new piece. It appends only to a piece of the same stream and the same part (head or
// tail). That piece must also have room, have begun less than flushEvery ago, and be neither stored nor being stored.
func (c *Capture) add(stream string, at time.Time, data []byte, isTail bool) {
	size := int64(len(data))
	c.waiting += size
	if isTail {
		c.tailSize += size
	}
	if n := len(c.pieces); n > 0 {
		last := &c.pieces[n-1]
		fits := last.size+size <= maxPiece && at.Sub(last.at) < flushEvery
		if fits && last.data != nil && !last.storing && last.stream == stream && last.isTail == isTail {
			last.data = append(last.data, data...)
			last.size += size
			return
		}
	}
	c.seq++
	if isTail && c.tailFrom == 0 {
		c.tailFrom = c.seq
	}
	c.pieces = append(c.pieces, piece{seq: c.seq, stream: stream, at: at, size: size, data: slices.Clone(data), isTail: isTail})
}

// trim drops the oldest pieces of the tail, as long as the remaining pieces have at least c.tail bytes.
func (c *Capture) trim() {
	for {
		i := 0
		for i < len(c.pieces) && !c.pieces[i].isTail {
			i++
		}
		if i == len(c.pieces) || c.tailSize-c.pieces[i].size < c.tail {
			return
		}
		oldest := c.pieces[i]
		c.tailSize -= oldest.size
		c.dropped += oldest.size
		if oldest.data != nil {
			c.waiting -= oldest.size
		}
		if oldest.data == nil || oldest.storing {
			c.forget = oldest.seq + 1
		}
		c.pieces = slices.Delete(c.pieces, i, i+1)
	}
}

// flush stores new pieces at intervals. It returns when the channel "stop" is closed, or when an interval passes without a new piece.
func (c *Capture) flush(stop <-chan struct{}) {
	for every := flushEvery; ; {
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
		c.mu.Lock()
		before := c.dropped
		out := c.unstored()
		if len(out.Add) == 0 && out.Delete.To == 0 {
			c.stop = nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		err := c.writer.WriteOutput(context.Background(), c.task, out)
		c.mu.Lock()
		c.written(out, err == nil)
		if every = flushEvery; c.dropped > before {
			every = floodEvery
		}
		c.mu.Unlock()
		if err != nil && !errors.Is(err, jobs.ErrLost) { // the pieces stay in memory, and the next flush writes them again
			c.log.Warn("cannot store output now", "task", c.task.ID, "err", err)
			every = floodEvery
		}
	}
}

// unstored returns the pieces that are not stored yet, and marks them as being written.
func (c *Capture) unstored() db.Output {
	var out db.Output
	first := true
	for i := range c.pieces {
		p := &c.pieces[i]
		if p.data != nil {
			chunk := jobs.Chunk{Seq: p.seq, Stream: p.stream, At: p.at, Data: p.data}
			if p.isTail && first {
				chunk.DroppedBytes = c.dropped
			}
			out.Add = append(out.Add, chunk)
			p.storing = true
		}
		first = first && !p.isTail
	}
	if c.forget > 0 {
		out.Delete = db.Pieces{From: c.tailFrom, To: c.forget}
	}
	return out
}

// written records that a write has ended. The parameter "out" is the output that was written, and ok reports whether the write succeeded.
func (c *Capture) written(out db.Output, ok bool) {
	if ok && c.forget == out.Delete.To {
		c.forget = 0
	}
	for i := range c.pieces {
		p := &c.pieces[i]
		if p.storing = false; !ok || p.data == nil || len(out.Add) == 0 || p.seq > out.Add[len(out.Add)-1].Seq {
			continue
		}
		p.data = nil
		c.waiting -= p.size
	}
	c.pieces = slices.DeleteFunc(c.pieces, func(p piece) bool { return p.data == nil && !p.isTail })
	c.room.Broadcast()
}

// Close ends the flusher. After Close, Rest returns the pieces that are not stored yet.
func (c *Capture) Close() {
	c.mu.Lock()
	if c.closed = true; c.stop != nil {
		close(c.stop)
	}
	c.room.Broadcast()
	c.mu.Unlock()
	c.flusher.Wait()
}

// Rest returns the output that is not stored yet. The write of the attempt's outcome stores it. Rest cuts the tail to at most c.tail
// bytes. Rest does not count the output as stored, so the caller can call it again if the write fails.
func (c *Capture) Rest() db.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.unstored()
	first := slices.IndexFunc(c.pieces, func(p piece) bool { return p.isTail })
	over := max(c.tailSize-c.tail, 0)
	if first < 0 || c.dropped+over == 0 {
		return out
	}
	if c.pieces[first].data == nil {
		out.Cut = db.Cut{Seq: c.pieces[first].seq, Skip: over, Dropped: c.dropped + over}
		return out
	}
	for i := range out.Add {
		if out.Add[i].Seq == c.pieces[first].seq {
			out.Add[i].Data, out.Add[i].DroppedBytes = out.Add[i].Data[over:], c.dropped+over
		}
	}
	return out
}

// remember keeps the last bytes of a stream.
func (c *Capture) remember(stream string, data []byte) {
	last := &c.last[0]
	if stream != "stderr" {
		last = &c.last[1]
	}
	data = data[max(len(data)-lastBytes, 0):]
	if over := len(*last) + len(data) - lastBytes; over > 0 {
		*last = slices.Delete(*last, 0, over)
	}
	*last = append(*last, data...)
}

// ErrorLine returns the last line that the command printed to stderr, or to stdout if it printed nothing to stderr. It returns an empty
// text if the output of the task is not stored.
func (c *Capture) ErrorLine() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.task.OutputLimit <= 0 {
		return ""
	}
	return cmp.Or(humanize.LastText(c.last[0], maxErrorLine), humanize.LastText(c.last[1], maxErrorLine))
}

// Sizes returns how many bytes were printed, and whether the capture has dropped some of them.
func (c *Capture) Sizes() (total int64, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, c.dropped > 0 || c.tailSize > c.tail
}
