package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A message is sent as a frame: a length of four bytes, then all fields of the message in a fixed order. Numbers are
// varints. Strings and lists begin with their length. A field that is not set takes one byte. Each message has a
// method "fields", which writes the fields of the message or reads them.

// maxFrame limits the size of a frame. Arguments and environments are far smaller.
const maxFrame = 16 << 20

const frameHeader = 4

var errFrame = errors.New("invalid frame")

type message interface{ fields(c *codec) }

// codec writes or reads the fields of a message.
type codec struct {
	reading bool
	data    []byte // bytes written so far, or bytes still to read
	whole   string // whole message; only set when reading
	bad     bool   // whether the data that was read is invalid
}

func (r *request) fields(c *codec) {
	c.text(&r.Op)
	integer(c, &r.ID)
	integer(c, &r.Generation)
	c.text(&r.Path)
	c.list(&r.Argv)
	c.list(&r.Env)
	c.text(&r.Dir)
	integer(c, &r.Null)
	integer(c, &r.Deadline)
	integer(c, &r.Signal)
	integer(c, &r.After)
	integer(c, &r.N)
	integer(c, &r.Leave)
	r.Resources.fields(c)
}

func (r *Resources) fields(c *codec) {
	c.flag(r.User != nil, func() { r.User = &User{} })
	if u := r.User; u != nil {
		integer(c, &u.UID)
		integer(c, &u.GID)
		n := len(u.Groups)
		c.length(&n)
		for i := range n {
			if c.reading {
				u.Groups = append(u.Groups, 0)
			}
			integer(c, &u.Groups[i])
		}
	}
	integer(c, &r.Nice)
	integer(c, &r.IOPriority)
	integer(c, &r.Memory)
	integer(c, &r.CPU)
}

func (r *reply) fields(c *codec) {
	c.text(&r.Op)
	integer(c, &r.ID)
	integer(c, &r.Generation)
	integer(c, &r.Protocol)
	c.text(&r.Version)
	integer(c, &r.Pid)
	c.text(&r.Reason)
	integer(c, &r.Errno)
	c.text(&r.EndedBy)
	integer(c, &r.N)
	c.flag(r.Exit != nil, func() { r.Exit = &Exit{} })
	if r.Exit != nil {
		r.Exit.fields(c)
	}
}

// flag writes or reads one bit: whether a field is set. If it reads that the field is set, it calls the function "set".
func (c *codec) flag(isSet bool, set func()) {
	number := 0
	if isSet {
		number = 1
	}
	if integer(c, &number); c.reading && number != 0 {
		set()
	}
}

func (e *Exit) fields(c *codec) {
	integer(c, &e.Code)
	integer(c, &e.Signal)
	integer(c, &e.LeftOver)
	integer(c, &e.Left)
	c.flag(e.OutOfMemory, func() { e.OutOfMemory = true })
	integer(c, &e.Usage.User)
	integer(c, &e.Usage.System)
	integer(c, &e.Usage.MaxRSS)
	integer(c, &e.Usage.Read)
	integer(c, &e.Usage.Written)
	n := len(e.Denied)
	c.length(&n)
	for i := range n {
		if c.reading {
			e.Denied = append(e.Denied, MarkedProcess{})
		}
		p := &e.Denied[i]
		integer(c, &p.PID)
		c.text(&p.Name)
		c.text(&p.State)
		integer(c, &p.UID)
	}
}

// integer writes or reads a number.
func integer[T ~int | ~int64](c *codec, v *T) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, int64(*v))
		return
	}
	got, n := binary.Varint(c.data)
	if n <= 0 || int64(T(got)) != got {
		c.fail()
		return
	}
	*v, c.data = T(got), c.data[n:]
}

// length writes or reads the length of a string or list. Each element takes at least one byte, so a length greater than
// the number of unread bytes is invalid.
func (c *codec) length(n *int) {
	if integer(c, n); c.reading && (*n < 0 || *n > len(c.data)) {
		*n = 0
		c.fail()
	}
}

func (c *codec) text(v *string) {
	n := len(*v)
	if c.length(&n); !c.reading {
		c.data = append(c.data, *v...)
		return
	}
	from := len(c.whole) - len(c.data)
	*v, c.data = c.whole[from:from+n], c.data[n:]
}

func (c *codec) list(v *[]string) {
	n := len(*v)
	if c.length(&n); c.reading {
		*v = make([]string, n)
	}
	for i := range n {
		c.text(&(*v)[i])
	}
}

func (c *codec) fail() { c.bad, c.data, c.whole = true, nil, "" }

// encode returns a message as a frame.
func encode(m message) ([]byte, error) {
	c := codec{data: make([]byte, frameHeader, 512)}
	m.fields(&c)
	size := len(c.data) - frameHeader
	if size > maxFrame {
		return nil, fmt.Errorf("message of %d bytes exceeds the limit of %d bytes", size, maxFrame)
	}
	binary.BigEndian.PutUint32(c.data, uint32(size))
	return c.data, nil
}

// decode reads a message from the data after the header of its frame.
func decode(data []byte, m message) error {
	c := codec{reading: true, data: data, whole: string(data)}
	if m.fields(&c); c.bad || len(c.data) > 0 {
		return errFrame
	}
	return nil
}

// frameReader splits a stream into frames.
type frameReader struct {
	buffer []byte
	start  int // position of the first byte that is received and not returned yet
	end    int
}

// nextFrame returns the data of the next frame without its header. It returns false if the frame is not complete yet.
// The data is valid until the next call of the method "space".
func (b *frameReader) nextFrame() (data []byte, ok bool, err error) {
	unread := b.buffer[b.start:b.end]
	if len(unread) < frameHeader {
		return nil, false, nil
	}
	size := binary.BigEndian.Uint32(unread)
	if size > maxFrame {
		return nil, false, fmt.Errorf("%w: %d bytes", errFrame, size)
	}
	end := frameHeader + int(size)
	if len(unread) < end {
		return nil, false, nil
	}
	b.start += end
	return unread[frameHeader:end], true, nil
}

// space returns a buffer for the next read.
func (b *frameReader) space() []byte {
	const least = 4 << 10
	if b.start > 0 {
		copy(b.buffer, b.buffer[b.start:b.end])
		b.start, b.end = 0, b.end-b.start
	}
	if len(b.buffer)-b.end < least {
		b.buffer = append(make([]byte, 0, 2*len(b.buffer)+2*least), b.buffer...)
		b.buffer = b.buffer[:cap(b.buffer)]
	}
	return b.buffer[b.end:]
}

// advance records that n bytes were read into the buffer that the method "space" returned.
func (b *frameReader) advance(n int) { b.end += n }

// The method "next" reads a message from r.
func (b *frameReader) next(r io.Reader, m message) error {
	for {
		data, ok, err := b.nextFrame()
		switch {
		case err != nil:
			return err
		case ok:
			return decode(data, m)
		}
		n, err := r.Read(b.space())
		if b.advance(n); n == 0 && err != nil {
			return err
		}
	}
}
