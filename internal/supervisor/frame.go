package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A message is sent as a frame: its length in four bytes, then all of its fields in a fixed order. Numbers are varints. Texts and lists
// begin with their length. A field that is not set costs a byte. The same method of a message writes and reads it.

// frameMost limits a frame: arguments and environments are far smaller.
const frameMost = 16 << 20

const frameHeader = 4

var errFrame = errors.New("bad frame")

type message interface{ fields(c *codec) }

// codec writes the fields of a message, or reads them.
type codec struct {
	reading bool
	data    []byte // written so far, or not read yet
	texts   string // when reading: all of the message
	bad     bool   // what was read is no such message
}

func (r *request) fields(c *codec) {
	c.text(&r.Op)
	code(c, &r.ID)
	code(c, &r.Generation)
	c.text(&r.Path)
	c.list(&r.Argv)
	c.list(&r.Env)
	c.text(&r.Dir)
	code(c, &r.Null)
	code(c, &r.Deadline)
	code(c, &r.Signal)
	code(c, &r.After)
	code(c, &r.N)
}

func (r *reply) fields(c *codec) {
	c.text(&r.Op)
	code(c, &r.ID)
	code(c, &r.Generation)
	code(c, &r.Protocol)
	c.text(&r.Version)
	code(c, &r.Pid)
	c.text(&r.Why)
	code(c, &r.Errno)
	c.text(&r.EndedBy)
	code(c, &r.N)
	ended := 0
	if r.Exit != nil {
		ended = 1
	}
	if code(c, &ended); ended == 0 {
		return
	}
	if c.reading {
		r.Exit = &Exit{}
	}
	r.Exit.fields(c)
}

func (e *Exit) fields(c *codec) {
	code(c, &e.Code)
	code(c, &e.Signal)
	code(c, &e.LeftOver)
	code(c, &e.User)
	code(c, &e.System)
	n := len(e.Denied)
	c.length(&n)
	for i := range n {
		if c.reading {
			e.Denied = append(e.Denied, MarkedProcess{})
		}
		p := &e.Denied[i]
		code(c, &p.PID)
		c.text(&p.Name)
		c.text(&p.State)
		code(c, &p.UID)
	}
}

// code writes or reads a number.
func code[T ~int | ~int64](c *codec, v *T) {
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

// length writes or reads the length of a text or list. An element has a byte at least.
func (c *codec) length(n *int) {
	if code(c, n); c.reading && (*n < 0 || *n > len(c.data)) {
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
	from := len(c.texts) - len(c.data)
	*v, c.data = c.texts[from:from+n], c.data[n:]
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

func (c *codec) fail() { c.bad, c.data, c.texts = true, nil, "" }

// frame returns a message as it is sent.
func frame(m message) ([]byte, error) {
	c := codec{data: make([]byte, frameHeader, 512)}
	m.fields(&c)
	size := len(c.data) - frameHeader
	if size > frameMost {
		return nil, fmt.Errorf("message of %d bytes", size)
	}
	binary.BigEndian.PutUint32(c.data, uint32(size))
	return c.data, nil
}

// unframe reads a message from what follows the header of its frame.
func unframe(data []byte, m message) error {
	c := codec{reading: true, data: data, texts: string(data)}
	if m.fields(&c); c.bad || len(c.data) > 0 {
		return errFrame
	}
	return nil
}

// inbox takes frames from a stream.
type inbox struct {
	memory []byte
	from   int // of what was read and not yet taken
	to     int
}

// take returns the next frame without its header, if all of it was read. It is good until the next call of space.
func (b *inbox) take() (data []byte, ok bool, err error) {
	unread := b.memory[b.from:b.to]
	if len(unread) < frameHeader {
		return nil, false, nil
	}
	size := binary.BigEndian.Uint32(unread)
	if size > frameMost {
		return nil, false, fmt.Errorf("%w: %d bytes", errFrame, size)
	}
	end := frameHeader + int(size)
	if len(unread) < end {
		return nil, false, nil
	}
	b.from += end
	return unread[frameHeader:end], true, nil
}

// space returns where to read what comes next.
func (b *inbox) space() []byte {
	const least = 4 << 10
	copy(b.memory, b.memory[b.from:b.to])
	b.from, b.to = 0, b.to-b.from
	if len(b.memory)-b.to < least {
		b.memory = append(make([]byte, 0, 2*len(b.memory)+2*least), b.memory...)
		b.memory = b.memory[:cap(b.memory)]
	}
	return b.memory[b.to:]
}

// add takes note of n bytes that were read into space.
func (b *inbox) add(n int) { b.to += n }

// next reads a message from r.
func (b *inbox) next(r io.Reader, m message) error {
	for {
		data, ok, err := b.take()
		switch {
		case err != nil:
			return err
		case ok:
			return unframe(data, m)
		}
		n, err := r.Read(b.space())
		if b.add(n); n == 0 && err != nil {
			return err
		}
	}
}
