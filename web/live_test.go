package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestOpenPageIsNotifiedOfChanges(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	var tabs []*bufio.Reader
	for range 3 {
		res, err := s.client.Do(s.request("GET", "/events", nil))
		testkit.NoError(t, err)
		defer res.Body.Close()
		if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
			t.Fatalf("got status %s, type %s; want 200, text/event-stream", res.Status, kind)
		}
		tab := bufio.NewReader(res.Body)
		if line, err := tab.ReadString('\n'); err != nil || line != "retry: 3000\n" {
			t.Fatalf("got %q, error %v; want \"retry: 3000\\n\"", line, err)
		}
		tabs = append(tabs, tab)
	}
	awaitEvent := func() {
		t.Helper()
		for _, tab := range tabs {
			for line := ""; line != "event: rev\n"; {
				var err error
				if line, err = tab.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	awaitEvent() // the first event reports changes that the page may have missed before it connected
	began := time.Now()
	for range 5 { // each commit causes a notification, but a page receives at most one per second
		shell(t, r, "true")
	}
	awaitEvent()
	t.Logf("the page was notified after %v", time.Since(began))
}

func TestOutputIsDownloadedUnchanged(t *testing.T) {
	r := open(t)
	id := shell(t, r, `printf 'a\033[31mb\000\377\n'; exit 1`)
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	status, body, header := s.do(s.request("GET", fmt.Sprintf("/tasks/%d/log", id), nil))
	testkit.Equal(t, "status", status, http.StatusOK)
	testkit.Equal(t, "body", body, "a\x1b[31mb\x00\xff\n")
	testkit.Equal(t, "content type", header.Get("Content-Type"), "text/plain; charset=utf-8")
	testkit.Contains(t, header.Get("Content-Disposition"), `attachment; filename="task-1-attempt-1.log"`)
	for _, path := range []string{"/tasks/1/log?attempt=2", "/tasks/1/log?attempt=x", "/tasks/9/log", "/tasks/x/log"} {
		if status, _ := s.get(path); status != http.StatusNotFound {
			t.Errorf("%s: got status %d, want 404", path, status)
		}
	}
}

func TestOutputIsFollowed(t *testing.T) {
	r := open(t)
	dir := t.TempDir()
	id := shell(t, r, "echo one; echo two >&2; while [ ! -e "+dir+"/go ]; do sleep 0.05; done; echo three; exit 3", jobs.Queue("media"))
	stop := sync.OnceFunc(runnerkit.Work(t, r, web1))
	t.Cleanup(func() { touch(t, dir+"/go"); stop() })
	testkit.Eventually(t, "it runs", func() bool { return state(t, r, id) == jobs.Running })
	s := serve(t, r, web.ServerOptions{})
	res, err := s.client.Do(s.request("GET", fmt.Sprintf("/tasks/%d/log?follow=1", id), nil))
	testkit.NoError(t, err)
	defer res.Body.Close()
	text := bufio.NewReader(res.Body)
	seen := ""
	for !strings.Contains(seen, ">one\n") || !strings.Contains(seen, ">two\n") { // they arrive in any order
		line, err := text.ReadString('\n')
		testkit.NoError(t, err)
		seen += line
	}
	touch(t, dir+"/go")
	rest, err := io.ReadAll(text) // the response ends when the attempt ends
	testkit.NoError(t, err)
	testkit.Contains(t, string(rest), ">three\n")
	testkit.ContainsNone(t, string(rest), ">one\n", ">two\n")
	stop()
	_, body, _ := s.do(s.request("GET", fmt.Sprintf("/tasks/%d/log?follow=1", id), nil))
	testkit.Contains(t, body, ">one\n</span>", "three\n</span>", `class="l e"`)
	if !strings.HasSuffix(body, "\x1e") {
		t.Errorf("got %q, want a separator at the end", body)
	}
}

func TestDatabaseThatDoesNotAnswer(t *testing.T) {
	r := open(t)
	shell(t, r, "true")
	s := serveEmbedded(t, r, web.Options{BasePath: "/x"})
	testkit.NoError(t, r.Close())
	for _, path := range []string{"/tasks", "/schedules"} {
		if status, body := s.get(path); status != http.StatusServiceUnavailable || !strings.Contains(body, "does not answer in time") {
			t.Errorf("%s: got status %d, want 503: %s", path, status, body)
		}
	}
	if status, _ := s.post("/actions/retry", url.Values{"id": {"1"}}); status != http.StatusServiceUnavailable {
		t.Errorf("got status %d, want 503", status)
	}
}
