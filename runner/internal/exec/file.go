package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"
)

var errNotRegular = errors.New("not a regular file")

// readRegular returns the content of a regular file, at most limit+1 bytes of it. flags are added to the flags of open. readRegular
// never waits for the writer of a FIFO, and never opens a device, since some devices act when they are opened.
func readRegular(ctx context.Context, path string, flags, limit int) ([]byte, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && !info.Mode().IsRegular():
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
	stop := context.AfterFunc(ctx, func() { _ = file.Close() }) // ends a read that blocks, as reads of some files in /proc do
	defer stop()
	return io.ReadAll(io.LimitReader(file, int64(limit)+1))
}

const (
	maxFileCalls = 64               // calls at once that touch files of tasks; more calls wait
	fileTimeout  = 10 * time.Second // for one call
)

// fileCalls has a place for each call of touchFile. A call that never returns keeps its place and its thread.
var fileCalls = make(chan struct{}, maxFileCalls)

// touchFile calls touch, which uses a file that a task names, and returns what touch returns. A network filesystem may never answer, and
// no system call can be taken back. So touchFile returns an error when ctx ends or after fileTimeout, and leaves the call behind.
func touchFile[T any](ctx context.Context, touch func(context.Context) (T, error)) (result T, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, fileTimeout, fmt.Errorf("no answer within %v", fileTimeout))
	defer stop()
	select {
	case fileCalls <- struct{}{}:
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
	type answer struct {
		result T
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-fileCalls }()
		result, err := touch(ctx)
		answers <- answer{result, err}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return result, context.Cause(ctx)
	}
}

// readTaskFile is readRegular for a file that a task names. A file that is larger than limit is an error.
func readTaskFile(ctx context.Context, path string, limit int) ([]byte, error) {
	return touchFile(ctx, func(ctx context.Context) ([]byte, error) {
		text, err := readRegular(ctx, path, 0, limit)
		if err == nil && len(text) > limit {
			err = fmt.Errorf("larger than %d bytes", limit)
		}
		return text, err
	})
}

// answers returns an error if the filesystem of one of several files does not answer, and the path of that file. It is no error if a
// file does not exist: the caller finds that out when it uses the file.
func answers(ctx context.Context, paths ...string) (silent string, err error) {
	var at atomic.Int32
	_, err = touchFile(ctx, func(context.Context) (struct{}, error) {
		for i, path := range paths {
			at.Store(int32(i))
			_, _ = os.Stat(path)
		}
		return struct{}{}, nil
	})
	return paths[at.Load()], err
}
