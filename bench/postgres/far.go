package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// away is the delay in each direction between a client and a server whose round
// trip time is 1 ms.
const away = 500 * time.Microsecond

// far does the same as drain with a server whose round trip time is 1 ms.
func (s system) far(n, processes, concurrency int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		address, stop, err := delayed(e.address)
		if err != nil {
			return 0, err
		}
		defer stop()
		return s.drain(n, processes, concurrency)(ctx, &env{address: address, short: e.short})
	}
}

// delayed starts a proxy that delays all data between clients and the server,
// and returns its address.
func delayed(address string) (_ string, stop func(), err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, err
	}

	query := u.Query()
	server := filepath.Join(query.Get("host"), ".s.PGSQL.5432")
	dir, err := os.MkdirTemp("/tmp", "far")
	if err != nil {
		return "", nil, err
	}

	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}

	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}

			conn, err := net.Dial("unix", server)
			if err != nil {
				client.Close()
				continue
			}

			go delay(conn, client)
			go delay(client, conn)
		}
	}()
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	return u.String(), func() { l.Close(); os.RemoveAll(dir) }, nil
}

// delay copies data and delays it.
func delay(to io.WriteCloser, from io.Reader) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 64<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{data[:n], time.Now().Add(away)}
			}
			if err != nil {
				return
			}
		}
	}()
	defer to.Close()

	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}

	for range pieces { // receive the remaining pieces, so that the goroutine that sends them can end
	}
}
