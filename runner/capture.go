package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Of an attempt's output the first headMost and the last bytes are kept, OutputLimit in all; the middle is counted and dropped. It
// is stored as pieces in the order in which it came, while the attempt runs, so that others can follow it; what has come
// since is stored by the write that ends the attempt.
const (
	headMost    = 64 << 10
	pieceMost   = 32 << 10
	flushEvery  = 100 * time.Millisecond
	floodEvery  = 500 * time.Millisecond // when more comes than is kept
	waitingMost = 2 << 20                // not yet stored; beyond it the pipe waits, which limits below 1 MiB never reach
	lingerAfter = 100 * time.Millisecond // for whoever still holds a pipe when the command has ended
)

// capture collects the output of one attempt.
type capture struct {
	a    *attempt
	tee  func(jobs.Task, string, []byte) // of what comes through pipes
	tail int64                           // how much the tail keeps

	readers sync.WaitGroup
	pipes   []*os.File // reading ends

	mu       sync.Mutex
	room     sync.Cond
	head     int64   // how much the head may still take
	total    int64   // printed
	seq      int64   // of the newest piece
	pieces   []piece // of the tail, and of the head what is not stored; in order
	tailSize int64
	tailFrom int64 // seq of the first piece that was ever in the tail; 0: none yet
	forget   int64 // pieces of the tail below this one are no longer kept
	dropped  int64 // bytes between head and tail
	waiting  int64 // bytes not stored

	flusher sync.WaitGroup
	stop    chan struct{} // ends the flusher; nil: there is none
	closed  bool
}

type piece struct {
	seq     int64
	stream  string
	at      time.Time
	size    int64
	data    []byte // nil once it is stored
	isTail  bool
	storing bool // a write is under way: it must not grow
}

// HeadSize returns how much of the start of an attempt's output is kept when the whole of it is more than limit bytes.
func HeadSize(limit int64) int64 { return min(headMost, limit/2) }

func newCapture(a *attempt) *capture {
	limit := a.task.OutputLimit
	head := HeadSize(limit)
	c := &capture{a: a, head: head, tail: limit - head}
	c.room.L = &c.mu
	return c
}

var buffers = sync.Pool{New: func() any { return new([pieceMost]byte) }}

// pipe returns a writing end whose data is captured as that of stream.
func (c *capture) pipe(stream string) (*os.File, error) {
	r, w, err := supervisor.Pipe()
	if err != nil {
		return nil, err
	}
	c.pipes = append(c.pipes, r)
	c.readers.Go(func() {
		defer r.Close()
		if c.tee != nil {
			defer c.tee(c.a.task, stream, nil)
		}
		buffer := buffers.Get().(*[pieceMost]byte)
		defer buffers.Put(buffer)
		err := supervisor.ReadPipe(r, buffer[:], func(data []byte) {
			if c.tee != nil {
				c.tee(c.a.task, stream, data)
			}
			c.write(stream, data)
		})
		if err != nil {
			c.a.e.log.Warn("cannot read output", "task", c.a.task.ID, "err", err)
		}
	})
	return w, nil
}

// drain returns when what a command has printed is captured, however late this process reads it. It is called when the command has
// ended; a process that escaped and still holds a pipe is not waited for.
func (c *capture) drain() {
	for _, pipe := range c.pipes {
		_ = pipe.SetReadDeadline(now().Add(lingerAfter)) // pipes of this system that know no deadline are read to their end
	}
	c.readers.Wait()
}

func (c *capture) write(stream string, data []byte) {
	at := now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting > waitingMost && c.waiting > c.tail && !c.closed {
		c.room.Wait()
	}
	c.total += int64(len(data))
	if n := min(c.head, int64(len(data))); n > 0 {
		c.add(stream, at, data[:n], false)
		c.head -= n
		data = data[n:]
	}
	if len(data) > 0 {
		c.add(stream, at, data, true)
		c.trim()
	}
	if c.stop == nil && !c.closed && len(c.pieces) > 0 {
		stop := make(chan struct{})
		c.stop = stop
		c.flusher.Go(func() { c.flush(stop) })
	}
}

// add appends to the newest piece, if that waits and is of the same kind, or begins another.
func (c *capture) add(stream string, at time.Time, data []byte, isTail bool) {
	size := int64(len(data))
	c.waiting += size
	if isTail {
		c.tailSize += size
	}
	if n := len(c.pieces); n > 0 {
		last := &c.pieces[n-1]
		if last.data != nil && !last.storing && last.stream == stream && last.isTail == isTail && last.size+size <= pieceMost && at.Sub(last.at) < flushEvery {
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

// trim drops the oldest pieces of the tail that are wholly beyond its size.
func (c *capture) trim() {
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

// flush stores what waits every now and then, until nothing has come for a while or the attempt ends.
func (c *capture) flush(stop <-chan struct{}) {
	for every := flushEvery; ; {
		timer := time.NewTimer(every)
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
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
		err := c.a.e.worker.WriteOutput(context.Background(), c.a.task, out)
		c.mu.Lock()
		c.stored(out, err == nil)
		if every = flushEvery; c.dropped > before {
			every = floodEvery
		}
		c.mu.Unlock()
		if err != nil && !errors.Is(err, jobs.ErrLost) { // what waits is kept and written again
			c.a.e.log.Warn("cannot store output now", "task", c.a.task.ID, "err", err)
			every = floodEvery
		}
	}
}

// unstored returns what waits, and marks it as under way.
func (c *capture) unstored() db.Output {
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

// stored takes note of what became of a write.
func (c *capture) stored(out db.Output, ok bool) {
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

// close ends the storing beside the attempt; rest tells what is left to store.
func (c *capture) close() {
	c.mu.Lock()
	if c.closed = true; c.stop != nil {
		close(c.stop)
	}
	c.room.Broadcast()
	c.mu.Unlock()
	c.flusher.Wait()
}

// rest returns what the write that ends the attempt has to store, the tail cut to its size. It changes nothing.
func (c *capture) rest() db.Output {
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

// sizes returns how much was printed, and whether some of it is not kept.
func (c *capture) sizes() (total int64, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total, c.dropped > 0 || c.tailSize > c.tail
}
