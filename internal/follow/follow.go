// Package follow carries the whole output of a running command to processes that wait for it.
//
// The database keeps only part of a large output. A process that shows the output, such as runner enqueue --wait, needs every
// byte. It listens on a Unix socket in the directory of the database, under the id of the task. Before a worker starts an attempt, it
// connects to the sockets of that task, and then it sends what it reads from the command.
//
// The invariants:
//
//   - A follower listens before the task can start. For a new task, the socket gets its name before the transaction commits.
//   - The follower confirms the connection before the command starts. So the follower knows that an attempt is sent to it before
//     any piece of that attempt is in the database, and shows each byte once.
//   - A follower that reads slowly slows the command down, as a pipe does. A follower that is gone does not: its connection fails.
//   - The last frame has the number of bytes. Without it the output is incomplete.
//
// The output does not go through the database, because 1 GB of it would be written twice, to the log and to the file, and the file would
// keep that size.
package follow

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// confirmMost is how long a worker waits for the confirmation of a follower. A follower that is stopped delays the start of the
	// command by no more than that.
	confirmMost = 5 * time.Second

	// hurryMost is how long an attempt that is being stopped waits for a follower that does not read.
	hurryMost = 2 * time.Second

	frameMost = 1 << 20 // bytes of data in a frame; writers send less
	headSize  = 5       // bytes: kind of the frame, and size of its data

	confirmed = 'y'
)

// The kinds of frames.
const (
	kindStdout = 'o'
	kindStderr = 'e'
	kindEnd    = '.' // the data is the number of all bytes
)

var kinds = map[string]byte{"stdout": kindStdout, "stderr": kindStderr}

// directory returns the directory of the sockets, which is in the directory of the database.
func directory(dir string) string { return filepath.Join(dir, "follow") }

// A Follower receives the whole output of the attempts of one task.
type Follower struct {
	listener net.Listener
	dir      string // directory of the socket
	name     string // name of the socket; changed by Bind
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // open connections; nil after Close
}

// Listen makes a socket in the directory of a database. No worker finds the socket before Bind. A worker finds it only if it runs on this
// machine and may connect to it.
func Listen(dir string) (*Follower, error) {
	f := &Follower{dir: directory(dir), conns: map[net.Conn]bool{}, name: fmt.Sprintf("new-%d-%d", os.Getpid(), time.Now().UnixNano())}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, err
	}
	address, release, err := socketAddress(f.dir, f.name)
	if err != nil {
		return nil, err
	}
	defer release()
	listener, err := net.Listen("unix", address)
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // Bind renames the socket
	f.listener = listener
	return f, nil
}

// Bind gives the socket the name of a task, under which workers find it.
func (f *Follower) Bind(id int64) error {
	name := fmt.Sprintf("%d-%s", id, strings.TrimPrefix(f.name, "new-"))
	if err := os.Rename(filepath.Join(f.dir, f.name), filepath.Join(f.dir, name)); err != nil {
		return err
	}
	f.name = name
	return nil
}

// Serve receives attempts until Close. begin is called with the generation of each attempt, before the worker starts it. It returns the
// functions that receive the data of the attempt, and its end. complete reports whether every byte has come. data is valid during the
// call. If receive returns an error, the worker sends no more of this attempt.
func (f *Follower) Serve(begin func(generation int64) (receive func(stream string, data []byte) error, end func(complete bool))) {
	f.serving.Go(func() {
		for {
			conn, err := f.listener.Accept()
			if err != nil {
				return
			}
			f.serving.Go(func() {
				defer f.release(conn)
				if !f.keep(conn) {
					return
				}
				var generation [8]byte
				if _, err := io.ReadFull(conn, generation[:]); err != nil {
					return
				}
				receive, end := begin(int64(binary.BigEndian.Uint64(generation[:])))
				complete := false
				defer func() { end(complete) }()
				if _, err := conn.Write([]byte{confirmed}); err != nil {
					return
				}
				complete = copyFrames(conn, receive) == nil
			})
		}
	})
}

// keep records an open connection. It returns false after Close.
func (f *Follower) keep(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		return false
	}
	f.conns[conn] = true
	return true
}

func (f *Follower) release(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	_ = conn.Close()
}

// copyFrames passes the data of frames to receive, until the frame that ends the attempt.
func copyFrames(conn io.Reader, receive func(stream string, data []byte) error) error {
	in := bufio.NewReaderSize(conn, 256<<10)
	var data []byte
	for received := uint64(0); ; {
		var head [headSize]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(head[1:])
		if size > frameMost {
			return fmt.Errorf("a frame of %d bytes", size)
		}
		if int(size) > cap(data) {
			data = make([]byte, size)
		}
		data = data[:size]
		if _, err := io.ReadFull(in, data); err != nil {
			return err
		}
		stream := "stdout"
		switch head[0] {
		case kindEnd:
			if size != 8 || binary.BigEndian.Uint64(data) != received {
				return errors.New("bytes are missing")
			}
			return nil
		case kindStderr:
			stream = "stderr"
		}
		received += uint64(size)
		if err := receive(stream, data); err != nil {
			return err
		}
	}
}

// Close removes the socket and ends the connections that are open. It waits until the functions of begin have returned.
func (f *Follower) Close() {
	_ = os.Remove(filepath.Join(f.dir, f.name))
	_ = f.listener.Close()
	f.mu.Lock()
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.conns = nil
	f.mu.Unlock()
	f.serving.Wait()
}

// Followers are the connections of a worker to the followers of one attempt. The methods are safe for use by several goroutines. A nil
// *Followers is valid and sends nothing.
type Followers struct {
	mu    sync.Mutex
	conns []net.Conn // open connections
	total uint64     // bytes of all streams
	stop  func() bool
}

// Connect connects to the followers of a task. It returns nil if there are none. It removes the sockets of processes that are dead. When
// ctx ends, a follower that does not read for hurryMost loses the rest of the output, so that no follower can delay the end of an attempt
// that is being stopped.
func Connect(ctx context.Context, dir string, id, generation int64) *Followers {
	dir = directory(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // most databases never had a follower
	}
	var conns []net.Conn
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), strconv.FormatInt(id, 10)+"-") {
			continue
		}
		conn, err := connect(dir, entry.Name(), generation)
		if err != nil {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
			continue
		}
		conns = append(conns, conn)
	}
	if conns == nil {
		return nil
	}
	f := &Followers{conns: slices.Clone(conns)}
	f.stop = context.AfterFunc(ctx, func() {
		for _, conn := range conns {
			_ = conn.SetWriteDeadline(time.Now().Add(hurryMost))
		}
	})
	return f
}

func connect(dir, name string, generation int64) (net.Conn, error) {
	address, release, err := socketAddress(dir, name)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := net.DialTimeout("unix", address, confirmMost)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(confirmMost))
	var answer [1]byte
	if _, err = conn.Write(binary.BigEndian.AppendUint64(nil, uint64(generation))); err == nil {
		_, err = io.ReadFull(conn, answer[:])
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, conn.SetDeadline(time.Time{})
}

// Write sends data of a stream. It waits while a follower does not read. A follower that cannot be reached gets no more.
func (f *Followers) Write(stream string, data []byte) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total += uint64(len(data))
	f.send(kinds[stream], data)
}

func (f *Followers) send(kind byte, data []byte) {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(data)))
	left := f.conns[:0]
	for _, conn := range f.conns {
		frame := net.Buffers{head, data}
		if _, err := frame.WriteTo(conn); err != nil {
			_ = conn.Close()
			continue
		}
		left = append(left, conn)
	}
	f.conns = left
}

// Close tells the followers that the output is complete, and closes the connections.
func (f *Followers) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
	f.send(kindEnd, binary.BigEndian.AppendUint64(nil, f.total))
	for _, conn := range f.conns {
		_ = conn.Close()
	}
	f.conns = nil
}
