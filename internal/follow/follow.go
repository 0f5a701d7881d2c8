// Package follow sends the whole output of a running command to processes that wait for it.
//
// The database keeps only part of a large output. A process that shows the output, such as "runner enqueue --wait", needs every byte. In
// this package such a process is a follower. It listens on a Unix socket in the directory of the database, and the name of the socket
// begins with the id of the task. Before a worker starts an attempt, it connects to the sockets of that task. Then it sends all output of
// the command to them.
//
// The invariants:
//
//   - A follower listens before the task can start. For a new task, the socket gets its name before the transaction commits.
//   - The follower confirms the connection before the command starts. So before any output of an attempt is in the database, the follower
//     knows that a worker will send it this output. It can therefore show each byte exactly once.
//   - A follower that reads slowly slows the command down, as a pipe does. A dead follower does not, because its connection fails.
//   - The last frame contains the number of bytes. If this frame is missing, the output is incomplete.
//
// The output does not go through the database. SQLite would write 1 GB of output twice, to the write-ahead log and to the file, and the
// file would keep that size.
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
	// confirmMost is how long a worker waits for the byte with which a follower confirms a new connection. If the follower is suspended
	// (SIGSTOP), the command starts after this time.
	confirmMost = 5 * time.Second

	// hurryMost is how long a stopped attempt waits for a follower that does not read the output.
	hurryMost = 2 * time.Second

	frameMost = 1 << 20 // maximum bytes of data in a frame; writers send less
	headSize  = 5       // bytes before the data of a frame: one for its kind, four for the size of the data

	confirmed = 'y'
)

// Each frame has one of these kinds.
const (
	kindStdout = 'o'
	kindStderr = 'e'
	kindEnd    = '.' // last frame; its data is the number of bytes in all streams together
)

var kinds = map[string]byte{"stdout": kindStdout, "stderr": kindStderr}

// directory returns the directory of the sockets, which is in the directory of the database.
func directory(dir string) string { return filepath.Join(dir, "follow") }

// A Follower receives the whole output of the attempts of one task.
type Follower struct {
	listener net.Listener
	dir      string // directory of the socket
	name     string // file name of the socket; Bind changes it
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // open connections; nil after Close
}

// Listen creates a socket in the directory of a database. Workers can find the socket only after a call of Bind. They must also run on this
// machine and have permission to connect to the socket.
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
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // Bind renames the socket, so the listener cannot remove it by its first name
	f.listener = listener
	return f, nil
}

// Bind renames the socket so that its name begins with the id of a task. Workers find the socket by this name.
func (f *Follower) Bind(id int64) error {
	name := fmt.Sprintf("%d-%s", id, strings.TrimPrefix(f.name, "new-"))
	if err := os.Rename(filepath.Join(f.dir, f.name), filepath.Join(f.dir, name)); err != nil {
		return err
	}
	f.name = name
	return nil
}

// Serve starts goroutines that receive the output of attempts until Close. Before a worker starts an attempt, it connects to the socket.
// Serve then calls the function "begin" with the generation of the attempt. The function "begin" returns two further functions:
//
//   - Serve calls the function "receive" for each block of output. The slice data is valid only during the call. If receive returns an
//     error, Serve closes the connection.
//   - Serve calls the function "end" when the connection has ended. The parameter "complete" reports whether every byte of output has
//     arrived.
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

// keep stores an open connection, so that Close can close it. It returns false if Close was called before.
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

// copyFrames reads frames until the attempt ends, and passes their data to the function "receive".
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

// Close removes the socket and closes the open connections. It waits for running calls of the functions receive and end; see Serve.
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

// Followers are the connections from a worker to all followers of one attempt. Several goroutines may call the methods at the same time. A
// nil *Followers sends nothing.
type Followers struct {
	mu    sync.Mutex
	conns []net.Conn // open connections
	total uint64     // number of bytes sent, in all streams together
	stop  func() bool
}

// Connect connects to the followers of a task. It returns nil if there are none. It removes the sockets of dead processes. When the attempt
// must stop, the caller ends ctx. From then on, a follower has only the time hurryMost to read the rest of the output. So a slow follower
// cannot delay the end of the attempt for longer than that.
func Connect(ctx context.Context, dir string, id, generation int64) *Followers {
	dir = directory(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the directory does not exist, because the database has never had a follower
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

// Write sends data of a stream to all followers. It blocks while a follower does not read. If a write to a follower fails, that follower
// gets no more data.
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
