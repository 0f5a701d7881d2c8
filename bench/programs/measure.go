package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite"
)

// mail runs the outbox mail service. The mail server refuses each tenth mail
// once. Each new user must get the mail.
func mail(ctx context.Context, b bench, s sizes, f *figures) error {
	server := newReceiver(func(body string, tries int) bool { return tries == 1 && strings.Contains(body, "0@") })
	defer server.Close()

	p, in, err := b.start(server.URL)
	if err != nil {
		return err
	}

	pids := b.processes(p)
	time.Sleep(2 * time.Second) // wait until the program has created its tables
	before := written(pids)
	for i := range s.mails {
		if _, err := fmt.Fprintf(in, "user%d@example.com\n", i); err != nil {
			return errors.Join(err, b.end(p))
		}
		time.Sleep(50 * time.Millisecond)
	}

	err = wait(time.Minute, func() bool { n, _ := server.got(); return n == s.mails })
	time.Sleep(time.Second)
	f.mailBytes = (written(pids) - before) / float64(s.mails)
	_, f.twice = server.got()
	f.rss = field(fmt.Sprintf("/proc/%d/status", p.Process.Pid), "VmRSS:") / 1000
	if b.redis != nil {
		f.redisRSS = field(fmt.Sprintf("/proc/%d/status", b.redis.Process.Pid), "VmRSS:") / 1000
	}
	if s.idle > 0 && err == nil {
		began := ran(pids)
		select {
		case <-time.After(s.idle):
		case <-ctx.Done():
			err = ctx.Err()
		}
		f.idle = 100 * (ran(pids) - began).Seconds() / s.idle.Seconds()
	}

	return errors.Join(err, b.end(p))
}

// photos runs the thumbnailer, kills it, and starts it again. In the end there
// must be a thumbnail of each image.
func photos(_ context.Context, b bench, s sizes, f *figures) error {
	source := filepath.Join(b.dir, "photos")
	if err := writeImages(source, s.photos); err != nil {
		return err
	}

	count := func() int {
		files, _ := filepath.Glob(filepath.Join(b.dir, "thumbs", "*.png"))
		return len(files)
	}
	p, _, err := b.start(source)
	if err != nil {
		return err
	}

	err = wait(time.Minute, func() bool { return count() >= s.photos/3 })
	if err := errors.Join(err, p.Process.Kill()); err != nil {
		return err
	}

	_ = p.Wait() // Wait returns an error because the process was killed
	if n := count(); n == s.photos {
		return errors.New("the program was done before it was killed")
	}

	began := time.Now()
	if p, _, err = b.start(source); err != nil {
		return err
	}

	err = wait(4*time.Minute, func() bool { return count() == s.photos })
	f.recovered = time.Since(began)
	return errors.Join(err, b.end(p))
}

// collector runs the edge collector. Each reading in its table must arrive at
// the server.
func collector(_ context.Context, b bench, s sizes, f *figures) error {
	began := time.Now()
	server := newReceiver(func(string, int) bool {
		passed := time.Since(began)
		return s.outage && passed > 3*time.Second && passed < 6*time.Second
	})
	defer server.Close()

	p, _, err := b.start(server.URL)
	if err != nil {
		return err
	}

	pids := b.processes(p)
	time.Sleep(2 * time.Second)
	before := written(pids)
	uploaded, _ := server.got()
	time.Sleep(time.Duration(s.readings) * time.Second)
	after, _ := server.got()
	f.readingBytes = (written(pids) - before) / float64(max(after-uploaded, 1))
	err = wait(30*time.Second, func() bool {
		stored, readErr := storedReadings(b.dir)
		n, _ := server.got()
		return readErr == nil && n >= stored-1 && n >= s.readings-2 // the last stored reading may not have arrived yet
	})
	return errors.Join(err, b.end(p))
}

func storedReadings(dir string) (n int, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "edge.db")+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return n, db.QueryRow(`SELECT count(*) FROM readings`).Scan(&n)
}
