package harness

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

const browseEvery = 50 * time.Millisecond

// Browse serves the web pages on this machine and requests one page after the
// other until ctx ends. It returns an error if a request fails or its status is
// a server error. It notes replies that report a busy database.
func Browse(ctx context.Context, dir string, pages http.Handler) error {
	w := workspace{dir}
	notes, err := openNotes(w)
	if err != nil {
		return err
	}

	db, err := connect(w)
	if err != nil {
		return err
	}
	defer db.Close()

	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	// The nemesis, the part of the selftest that injects faults, sometimes
	// stops this process. The timeout must be longer than any such stop.
	server := &http.Server{Handler: pages, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listen) }() // this goroutine ends when the server is closed
	defer func() { _ = server.Close() }()

	for i := 0; ctx.Err() == nil; i++ {
		var last int64
		if err := db.QueryRowContext(ctx, `SELECT coalesce(max(id), 1) FROM tasks`).Scan(&last); isUnreachable(err) {
			continue
		} else if err != nil && ctx.Err() == nil {
			return err
		}

		paths := []string{"/", "/tasks", "/tasks?q=state%3Afailed", "/schedules", "/metrics", "/healthz",
			fmt.Sprintf("/tasks/%d", max(1, last-rand.Int64N(50)))}
		path := paths[i%len(paths)]
		status, err := visit(ctx, "http://"+listen.Addr().String()+path)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case status == http.StatusServiceUnavailable:
			notes.add(opBusy, 0, 0, path)
		case status >= http.StatusInternalServerError || status == http.StatusForbidden:
			return fmt.Errorf("%s: status %d", path, status)
		}

		select {
		case <-ctx.Done():
		case <-time.After(browseEvery):
		}
	}

	return nil
}

func visit(ctx context.Context, url string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
