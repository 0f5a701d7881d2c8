//go:build !race

// The race detector needs additional memory, so this test runs without it.

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

// TestTenThousandEventStreamsCostLittleMemory lets 10,000 clients request the
// stream of events at the same time. The server must need little memory for
// them, and must still answer other users. It must release the memory after the
// clients have closed their connections.
func TestTenThousandEventStreamsCostLittleMemory(t *testing.T) {
	const (
		clients = 10_000
		streams = 500
		while   = 100 << 10 // maximum memory of the server while the clients are connected, in KiB
		after   = 60 << 10
	)
	server, address, token := startServer(t)
	ask := func(conn net.Conn) int {
		_, err := fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", address, token)
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(time.Minute))
		}
		if err != nil {
			return 0
		}
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
		if err != nil {
			return 0
		}
		return res.StatusCode
	}
	conns := make([]net.Conn, clients)
	var mu sync.Mutex
	answers := map[int]int{}
	each := func(do func(i int)) {
		next := make(chan int)
		var workers sync.WaitGroup
		for range 100 {
			workers.Go(func() {
				for i := range next {
					do(i)
				}
			})
		}
		for i := range clients {
			next <- i
		}
		close(next)
		workers.Wait()
	}
	each(func(i int) {
		conn, err := net.Dial("tcp", address)
		status := 0
		if err == nil {
			conns[i] = conn
			status = ask(conn)
		}
		mu.Lock()
		defer mu.Unlock()
		answers[status]++
	})
	if answers[http.StatusOK] != streams || answers[http.StatusServiceUnavailable] == 0 {
		t.Errorf("got answers %v, want %d streams; 0 is no answer", answers, streams)
	}
	t.Logf("answers %v, %d MiB while they are open", answers, resident(t, server)>>10)
	if got := resident(t, server); got > while {
		t.Errorf("got %d KiB while the streams are open, want at most %d", got, while)
	}
	page(t, address, token)
	for _, conn := range conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	got := resident(t, server)
	for began := time.Now(); got > after && time.Since(began) < testkit.Patience; got = resident(t, server) {
		page(t, address, token) // an idle server collects its garbage only every two minutes
	}
	t.Logf("%d MiB afterwards", got>>10)
	if got > after {
		t.Errorf("got %d KiB when they have gone, want at most %d", got, after)
	}
}

// startServer starts runner serve on a new database.
func startServer(t *testing.T) (server *os.Process, address, token string) {
	t.Helper()
	env := append(os.Environ(), "RUNNER_DB="+filepath.Join(t.TempDir(), "runner.db"))
	enqueue := exec.Command("runner", "enqueue", "--", "true")
	enqueue.Env = env
	if out, err := enqueue.CombinedOutput(); err != nil {
		t.Fatalf("runner enqueue: got error %v, want none: %s", err, out)
	}
	c := exec.Command("runner", "serve", "--listen", "127.0.0.1:0", "--print-token")
	c.Env = env
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, token, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(url), "http://"), "/#t=")
	return c.Process, address, token
}

// page requests a page as a browser does.
func page(t *testing.T, address, token string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.Patience}
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("got %s for a page, want 200", res.Status)
	}
}

// resident returns the resident memory of a process in KiB.
func resident(t *testing.T, p *os.Process) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(string(text), "VmRSS:")
	if _, err := fmt.Sscan(value, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
