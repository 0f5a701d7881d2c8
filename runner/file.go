package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

var errNotRegular = errors.New("not a regular file")

// readRegular returns the content of a regular file, and no more than limit+1 bytes of it. flags are added to those of open. It never
// waits for the writer of a FIFO, and never opens a device, which may act when it is opened.
func readRegular(ctx context.Context, path string, flags, limit int) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock|flags, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	stop := context.AfterFunc(ctx, func() { _ = file.Close() }) // ends the read of a file that blocks, as some in /proc do
	defer stop()
	return io.ReadAll(io.LimitReader(file, int64(limit)+1))
}

const (
	hangingReads = 64               // files that are read at once; beyond it the next read waits
	readWithin   = 10 * time.Second // for a file that a task names
)

// reading has a place for each file that readTaskFile reads. A read that never returns keeps its place and its thread.
var reading = make(chan struct{}, hangingReads)

// readTaskFile is readRegular for a file that a task names. A network filesystem may never answer, and no system call can be taken back:
// readTaskFile then returns an error when ctx ends, or after readWithin.
func readTaskFile(ctx context.Context, path string, limit int) ([]byte, error) {
	ctx, stop := context.WithTimeoutCause(ctx, readWithin, fmt.Errorf("not read within %v", readWithin))
	defer stop()
	select {
	case reading <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-reading }()
		text, err := readRegular(ctx, path, 0, limit)
		if err == nil && len(text) > limit {
			err = fmt.Errorf("larger than %d bytes", limit)
		}
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		return a.text, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
