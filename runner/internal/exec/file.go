package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

var errNotRegular = errors.New("not a regular file")

// readRegular returns the content of a regular file, but at most limit+1 bytes.
// flags are more flags for open. It never waits for a FIFO's writer, and never
// opens a device, because that has side effects on some.
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
	maxFileCalls = 64               // greatest number of calls of touchFile at once; more calls wait
	fileTimeout  = 10 * time.Second // timeout of one call of touchFile
)

// fileCalls is a semaphore for the system calls of touchFile. A system call
// that never returns keeps its slot and its thread.
var fileCalls = make(chan struct{}, maxFileCalls)

// touchFile returns the result of touch, which uses a file whose path comes
// from a task. The file may be on a network filesystem that never answers, and
// nothing interrupts a system call. So touchFile returns an error when ctx ends
// or after fileTimeout, and lets touch continue in its goroutine.
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

// readTaskFile calls readRegular within touchFile, for a file whose path comes
// from a task. It returns an error if the file is larger than limit.
func readTaskFile(ctx context.Context, path string, limit int) ([]byte, error) {
	return touchFile(ctx, func(ctx context.Context) ([]byte, error) {
		text, err := readRegular(ctx, path, 0, limit)
		if err == nil && len(text) > limit {
			err = fmt.Errorf("larger than %d bytes", limit)
		}
		return text, err
	})
}

// checkDir returns why a command can't enter a directory, or nil if it can. The
// dot makes stat need search permission, as chdir does.
func checkDir(ctx context.Context, dir string) error {
	_, err := touchFile(ctx, func(context.Context) (fs.FileInfo, error) { return os.Stat(dir + "/.") })
	return err
}

// answers checks whether the filesystem of a file answers. A missing file is no
// error here, because the caller detects it when it uses the file.
func answers(ctx context.Context, path string) error {
	_, err := touchFile(ctx, func(context.Context) (fs.FileInfo, error) {
		_, _ = os.Stat(path)
		return nil, nil
	})
	return err
}
