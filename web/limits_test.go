package web_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// dial opens a TCP connection to a site.
func dial(t *testing.T, s *site) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
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
	const most = 500
	ask := func() int {
		t.Helper()
		conn := dial(t, s)
		fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", strings.TrimPrefix(s.url, "http://"),
			s.token)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	for range most {
		if status := ask(); status != http.StatusOK {
			t.Fatalf("got status %d, want 200", status)
		}
	}
	if status := ask(); status != http.StatusServiceUnavailable {
		t.Errorf("stream %d: got status %d, want 503", most+1, status)
	}
	s.page("/") // the limit for streams does not apply to pages
}

// TestPagesAreServedWhileAClientHoldsAllConnections checks that other users get pages while one client holds all connections of the server,
// in whatever state these connections are.
func TestPagesAreServedWhileAClientHoldsAllConnections(t *testing.T) {
	r := open(t)
	s := serve(t, r, webOptions)
	host := strings.TrimPrefix(s.url, "http://")
	stream := dial(t, s)
	fmt.Fprintf(stream, "GET /events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", host, s.token)
	events := bufio.NewReader(stream)
	if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
		t.Fatalf("got %q, error %v; want 200 OK", line, err)
	}
	for _, text := range []string{"", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
		"POST /login HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\n"} {
		first := dial(t, s)
		fmt.Fprint(first, text)
		var others []net.Conn
		fill := func() (open bool) {
			for range 1100 {
				other := dial(t, s)
				fmt.Fprint(other, text)
				others = append(others, other)
			}
			s.client.CloseIdleConnections()
			s.page("/")
			if err := first.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			_, err := io.Copy(io.Discard, first)
			return errors.Is(err, os.ErrDeadlineExceeded)
		}
		open := fill()
		if strings.HasPrefix(text, "POST") {
			break // no connection waits for a request, so the server may close the one with the oldest request: the stream of events
		}
		for range 3 { // a busy server may answer the first request after many others
			open = open && fill()
		}
		if open {
			t.Errorf("%q: the oldest connection is open, want it closed", text)
		}
		for _, other := range others {
			_ = other.Close()
		}
		if line, err := events.ReadString('\n'); err != nil {
			t.Errorf("%q: the stream of a page: got %q, error %v; want it open", text, line, err)
		}
	}
}
