package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// build builds the programs of a library and measures their source and their
// size.
func build(ctx context.Context, dir, library string) (*figures, error) {
	f := &figures{lines: map[string]int{}, binary: map[string]int{}}
	for _, program := range []string{"mail", "photos", "collector"} {
		binary := filepath.Join(dir, program+"-"+library)
		source := "./" + program + "/" + library
		var err error
		if f.binary[program], err = compile(ctx, binary, source); err != nil {
			return nil, err
		}
		if f.lines[program], err = countLines(source + "/main.go"); err != nil {
			return nil, err
		}
	}

	return f, nil
}

// compile builds a stripped program, and returns its size in bytes.
func compile(ctx context.Context, binary, source string) (int, error) {
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", binary, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build %s: %w: %s", source, err, out)
	}

	info, err := os.Stat(binary)
	if err != nil {
		return 0, err
	}

	return int(info.Size()), nil
}

// bench runs one program of one library in a directory of its own.
type bench struct {
	dir, binary string
	redis       *exec.Cmd // nil if the library needs no Redis
}

func newBench(dir, library, program string) (bench, error) {
	b := bench{dir: filepath.Join(dir, library+"."+program), binary: filepath.Join(dir, program+"-"+library)}
	err := os.Mkdir(b.dir, 0o700)
	if err != nil || library != "asynq" {
		return b, err
	}

	// Redis appends each change to a file and syncs it once a second.
	b.redis = exec.Command("redis-server", "--port", "0", "--unixsocket", b.socket(), "--dir", b.dir, "--appendonly", "yes", "--save", "")
	if err := b.redis.Start(); err != nil {
		return b, fmt.Errorf("asynq needs redis-server: %w", err)
	}

	return b, wait(10*time.Second, func() bool { _, err := os.Stat(b.socket()); return err == nil })
}

func (b bench) socket() string { return filepath.Join(b.dir, "redis.sock") }

func (b bench) close() error {
	if b.redis == nil {
		return nil
	}
	return errors.Join(b.redis.Process.Signal(syscall.SIGTERM), b.redis.Wait())
}

// start starts the program and passes what to it.
func (b bench) start(what string) (*exec.Cmd, io.WriteCloser, error) {
	p := exec.Command(b.binary, b.dir, what)
	p.Env = append(os.Environ(), "REDIS_SOCKET="+b.socket())
	log, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()

	p.Stdout, p.Stderr = log, log
	in, err := p.StdinPipe()
	if err != nil {
		return nil, nil, err
	}

	return p, in, p.Start()
}

// end stops the program with a signal, as a service manager does.
func (b bench) end(p *exec.Cmd) error {
	err := errors.Join(p.Process.Signal(syscall.SIGTERM), p.Wait())
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(b.dir, "log"))
		err = fmt.Errorf("%w: %.2000s", err, text)
	}
	return err
}

// processes returns the ids of the processes whose resources count: the
// program, and Redis if the library needs it.
func (b bench) processes(p *exec.Cmd) []int {
	if b.redis == nil {
		return []int{p.Process.Pid}
	}
	return []int{p.Process.Pid, b.redis.Process.Pid}
}

// written returns the bytes that the processes have sent to the disk.
func written(pids []int) (sum float64) {
	for _, pid := range pids {
		sum += field(fmt.Sprintf("/proc/%d/io", pid), "write_bytes:")
	}
	return sum
}

// ran returns how much processor time the processes have used, in all threads.
func ran(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			ns, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseInt(ns, 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}

// field reads the number that follows a name in a file. It returns 0 if the
// name is missing.
func field(path, name string) float64 {
	text, _ := os.ReadFile(path)
	_, after, _ := strings.Cut("\n"+string(text), "\n"+name)
	value, _ := strconv.ParseFloat(strings.Fields(after + " 0")[0], 64)
	return value
}

// wait calls done until it returns true, or until the limit has passed.
func wait(limit time.Duration, done func() bool) error {
	for began := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > limit {
			return fmt.Errorf("not done after %v", limit)
		}
	}
	return nil
}

// receiver is an HTTP server that counts the JSON bodies that it has accepted.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string]int
	refuse func(body string, tries int) bool // whether to answer with an error; tries is the number of requests with this body so far
	tries  map[string]int
}

func newReceiver(refuse func(body string, tries int) bool) *receiver {
	r := &receiver{bodies: map[string]int{}, refuse: refuse, tries: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var body json.RawMessage
		if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}

		r.mu.Lock()
		defer r.mu.Unlock()

		r.tries[string(body)]++
		if r.refuse(string(body), r.tries[string(body)]) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}

		r.bodies[string(body)]++
	}))
	return r
}

// got returns the number of different bodies, and how often a body arrived that
// had arrived before.
func (r *receiver) got() (different, again int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.bodies {
		again += n - 1
	}
	return len(r.bodies), again
}

// writeImages writes n images to a new directory.
func writeImages(dir string, n int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}

	for i := range n {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%03d.png", i)))
		if err == nil {
			err = errors.Join(png.Encode(file, image.NewRGBA(image.Rect(0, 0, 64, 64))), file.Close())
		}
		if err != nil {
			return err
		}
	}

	return nil
}
