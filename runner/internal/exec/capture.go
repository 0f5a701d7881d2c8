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
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A Capture keeps the first bytes of an attempt's output (the head) and the
// last ones (the tail). Together they have at most OutputLimit bytes; HeadSize
// is the head's share. The bytes between them are counted and dropped.
//
// The output is stored as pieces, in the order in which they came, while the
// attempt runs, so that other processes can follow it. The write that ends the
// attempt stores the rest.
//
// The invariants:
//
//   - The pieces of the head are never dropped.
//   - The tail keeps every piece that has one of the last bytes. Older pieces
//     are dropped, stored or not (trim). So the stored tail may be too long by
//     less than one piece, until Rest removes these bytes.
//   - A piece doesn't change while it's being written (storing).
const (
	maxPiece   = 32 << 10
	flushEvery = 100 * time.Millisecond
	floodEvery = 500 * time.Millisecond // interval of flushes after an error, or while the command prints more than the capture keeps

	// maxWaiting limits the bytes that aren't stored yet: Write blocks while
	// there are more. If a full tail has more bytes, its size is the limit
	// instead.
	maxWaiting = 2 << 20

	maxErrorLine = 200     // greatest length of the result of ErrorLine, in bytes
	lastBytes    = 1 << 10 // bytes at the end of a stream in which ErrorLine looks for a line
)

// OutputWriter stores pieces of output. *db.Worker is one.
type OutputWriter interface {
	WriteOutput(ctx context.Context, task jobs.Task, output db.Output) error
}

// Capture collects the output of one attempt. Its methods are safe for use by
// many goroutines.
type Capture struct {
	task      jobs.Task
	writer    OutputWriter
	log       *slog.Logger
	tailLimit int64

	// Tee is called with the data that comes through pipes, and with nil at the
	// end of a stream. Set it before the command starts.
	Tee       func(task jobs.Task, stream string, data []byte)
	teeFailed atomic.Bool // whether Tee has panicked

	readers sync.WaitGroup
	pipes   []*os.File // read ends of the pipes

	mu       sync.Mutex
	room     sync.Cond // wakes blocked calls of Write when the number of unstored bytes decreases
	headRoom int64     // bytes that still fit into the head
	total    int64     // bytes printed
	seq      int64     // number of the newest piece
	head     []piece   // pieces of the head that aren't stored yet
	tail     []piece   // all pieces of the tail
	tailSize int64     // bytes of all pieces of the tail
	tailFrom int64     // number of the first piece that was ever in the tail; 0 before the tail begins
	forget   int64     // the next write deletes the stored pieces of the tail with a lower number than this; 0 to delete none
	dropped  int64     // bytes between head and tail
	waiting  int64     // bytes that aren't stored yet
	storing  int64     // number of the last piece that is being written; 0 while no write is in progress
	last     [2][]byte // last bytes of stderr and of stdout, in which ErrorLine looks for a line

	flusher sync.WaitGroup
	stop    chan struct{} // closed to end the flusher; nil if no flusher runs
	closed  bool
}

// piece is a part of the output that is stored as one row.
type piece struct {
	seq    int64
	stream string
	at     time.Time
	size   int64
	data   []byte // nil after the piece is stored
}

// NewCapture returns a Capture of the output of an attempt of task.
func NewCapture(task jobs.Task, writer OutputWriter, log *slog.Logger) *Capture {
	head := taskspec.HeadSize(task.OutputLimit)
	c := &Capture{task: task, writer: writer, log: log, headRoom: head, tailLimit: task.OutputLimit - head}
	c.room.L = &c.mu
	return c
}

// ClosedCapture returns a Capture without output. It drops all data.
func ClosedCapture() *Capture {
	c := NewCapture(jobs.Task{}, nil, nil)
	c.closed = true
	return c
}

// Write captures data as output of the given stream. After Close it drops the
// data.
func (c *Capture) Write(stream string, data []byte) {
	at := now()
	c.mu.Lock()
	defer c.mu.Unlock()

	for c.waiting > maxWaiting && c.waiting > c.tailLimit && !c.closed {
		c.room.Wait()
	}

	if c.closed {
		return
	}

	c.total += int64(len(data))
	c.remember(stream, data)
	if n := min(c.headRoom, int64(len(data))); n > 0 {
		c.head = c.add(c.head, stream, at, data[:n])
		c.headRoom -= n
		data = data[n:]
	}
	if len(data) > 0 {
		c.tail = c.add(c.tail, stream, at, data)
		c.tailSize += int64(len(data))
		if c.tailFrom == 0 {
			c.tailFrom = c.seq
		}
		c.trim()
	}

	if c.stop == nil && len(c.head)+len(c.tail) > 0 {
		stop := make(chan struct{})
		c.stop = stop
		c.flusher.Go(func() { c.flush(stop) })
	}
}

// add appends data to the newest piece, or begins a new one. It appends only to
// a piece of the same stream that has room, has begun less than flushEvery ago,
// and is neither stored nor being stored.
func (c *Capture) add(pieces []piece, stream string, at time.Time, data []byte) []piece {
	size := int64(len(data))
	c.waiting += size
	if n := len(pieces); n > 0 {
		p := &pieces[n-1]
		fits := p.size+size <= maxPiece && at.Sub(p.at) < flushEvery
		if fits && p.data != nil && p.seq > c.storing && p.stream == stream {
			p.data = append(p.data, data...)
			p.size += size
			return pieces
		}
	}

	c.seq++
	return append(pieces, piece{seq: c.seq, stream: stream, at: at, size: size, data: slices.Clone(data)})
}

// trim drops the oldest pieces of the tail, as long as the remaining ones have
// at least tailLimit bytes.
func (c *Capture) trim() {
	for len(c.tail) > 0 && c.tailSize-c.tail[0].size >= c.tailLimit {
		oldest := c.tail[0]
		c.tailSize -= oldest.size
		c.dropped += oldest.size
		if oldest.data != nil {
			c.waiting -= oldest.size
		}
		if oldest.data == nil || oldest.seq <= c.storing {
			c.forget = oldest.seq + 1
		}
		c.tail[0], c.tail = piece{}, c.tail[1:]
	}
}

// flush stores new pieces at intervals, until stop is closed or an interval
// passes without a new piece.
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

// unstored returns the pieces that aren't stored yet, and marks them as being
// written.
func (c *Capture) unstored() (out db.Output) {
	add := func(pieces []piece, dropped int64) {
		for i, p := range pieces {
			if p.data == nil {
				continue
			}
			chunk := db.Chunk{Seq: p.seq, Stream: db.Stream(p.stream), At: p.at, Data: p.data}
			if i == 0 {
				chunk.DroppedBytes = dropped
			}
			out.Add = append(out.Add, chunk)
			c.storing = p.seq
		}
	}
	add(c.head, 0)
	add(c.tail, c.dropped)
	if c.forget > 0 {
		out.Delete = db.Pieces{From: c.tailFrom, To: c.forget}
	}

	return out
}

// written records the end of a write.
func (c *Capture) written(out db.Output, ok bool) {
	defer c.room.Broadcast()

	c.storing = 0
	if !ok {
		return
	}

	last := int64(0)
	if n := len(out.Add); n > 0 {
		last = out.Add[n-1].Seq
	}

	if c.forget == out.Delete.To {
		c.forget = 0
	}

	store := func(p *piece) bool {
		if p.seq > last || p.data == nil {
			return false
		}
		c.waiting -= p.size
		p.data = nil
		return true
	}
	c.head = slices.DeleteFunc(c.head, func(p piece) bool { return store(&p) })
	for i := range c.tail {
		store(&c.tail[i])
	}
}

// Close ends the flusher. After Close, Rest returns the pieces that aren't
// stored yet.
func (c *Capture) Close() {
	c.mu.Lock()
	if c.closed = true; c.stop != nil {
		close(c.stop)
	}
	c.room.Broadcast()
	c.mu.Unlock()

	c.flusher.Wait()
}

// Rest returns the output that isn't stored yet, for the write of the attempt's
// outcome. It cuts the tail to tailLimit bytes. The output doesn't count as
// stored, so the caller can call Rest again if the write fails.
func (c *Capture) Rest() db.Output {
	c.mu.Lock()
	defer c.mu.Unlock()

	out := c.unstored()
	over := max(c.tailSize-c.tailLimit, 0)
	if len(c.tail) == 0 || c.dropped+over == 0 {
		return out
	}

	first := c.tail[0]
	if first.data == nil {
		out.Cut = db.Cut{Seq: first.seq, Skip: over, Dropped: c.dropped + over}
		return out
	}

	chunk := &out.Add[len(c.head)]
	chunk.Data, chunk.DroppedBytes = chunk.Data[over:], c.dropped+over
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

// ErrorLine returns the last line that the command printed to stderr, or to
// stdout if it printed nothing to stderr. It's empty if the task's output isn't
// stored.
func (c *Capture) ErrorLine() string {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.task.OutputLimit <= 0 {
		return ""
	}
	return cmp.Or(humanize.LastText(c.last[0], maxErrorLine), humanize.LastText(c.last[1], maxErrorLine))
}

// Sizes returns how many bytes were printed, and whether some of them were
// dropped.
func (c *Capture) Sizes() (total int64, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, c.dropped > 0 || c.tailSize > c.tailLimit
}
