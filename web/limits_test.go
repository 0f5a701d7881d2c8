package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

// dial opens a TCP connection to a site.
func dial(t *testing.T, s *site) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	testkit.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	testkit.NoError(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	return conn
}

func TestRequestsAreLimited(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := serve(t, r, webOptions)
	req := s.request("GET", "/tasks", nil)
	req.Header.Set("X-Long", strings.Repeat("x", 40<<10))
	if status, _, _ := s.do(req); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("40 KiB of headers: got status %d, want 431", status)
	}
	form := map[string][]string{"id": {"1"}, "back": {strings.Repeat("x", 2<<20)}}
	if status, body := s.post("/actions/retry", form); status != http.StatusBadRequest || !strings.Contains(body, "too large") {
		t.Errorf("a body of 2 MiB: got status %d, want 400", status)
	}

	slow := dial(t, s)
	fmt.Fprint(slow, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n") // this request stops in the middle of its headers
	if text, err := io.ReadAll(slow); err != nil || strings.Contains(string(text), "200 OK") {
		t.Errorf("headers without an end: got %q, error %v; want no answer", text, err)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	r := open(t)
	s := serve(t, r, webOptions)
	const limit = 500
	ask := func() int {
		t.Helper()
		conn := dial(t, s)
		fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", strings.TrimPrefix(s.url, "http://"),
			s.token)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		testkit.NoError(t, err)
		return res.StatusCode
	}
	for range limit {
		if status := ask(); status != http.StatusOK {
			t.Fatalf("got status %d, want 200", status)
		}
	}
	if status := ask(); status != http.StatusServiceUnavailable {
		t.Errorf("stream %d: got status %d, want 503", limit+1, status)
	}
	s.page("/") // the limit for streams does not apply to pages
}

func TestConnectionsBeyondLimitAreClosed(t *testing.T) {
	r := open(t)
	s := serve(t, r, webOptions)
	s.client.CloseIdleConnections()
	ask := func() (net.Conn, error) {
		conn := dial(t, s)
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(s.url, "http://"))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && !strings.Contains(line, "200 OK") {
			t.Fatalf("got %q, want 200 OK", line)
		}
		return conn, err
	}

	const limit = 1000
	var open []net.Conn
	for range limit {
		conn, err := ask()
		if err != nil {
			t.Fatalf("connection %d: got error %v, want an answer", len(open)+1, err)
		}
		open = append(open, conn)
	}
	if _, err := ask(); err == nil {
		t.Errorf("connection %d: got an answer, want it closed", limit+1)
	}

	open[0].Close()
	testkit.Eventually(t, "a new connection gets an answer", func() bool { _, err := ask(); return err == nil })
}
