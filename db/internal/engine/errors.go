package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"

	"example.com/runner/jobs"
)

// ErrPoolClosed returns the error that database/sql returns for a closed pool. Package database/sql does not export this error.
var ErrPoolClosed = sync.OnceValue(func() error {
	pool := sql.OpenDB(nowhere{})
	return cmp.Or(pool.Close(), pool.Ping())
})

// nowhere is a driver.Connector whose connections always fail. ErrPoolClosed needs one to make a pool.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, driver.ErrBadConn }
func (nowhere) Driver() driver.Driver                        { return nil }

// FileError returns the *jobs.Error for a file or directory that cannot be used.
func FileError(err error, path string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &jobs.Error{Kind: jobs.ErrNoDatabase, What: "no directory " + filepath.Dir(path), Err: err,
			Why: []string{"the directory of a database is not created"}, Hint: "mkdir -p " + filepath.Dir(path)}
	case errors.Is(err, fs.ErrPermission):
		return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot open " + path, Err: err,
			Why: []string{"permission denied"}, Hint: "check the owner and mode of the file and of its directory"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &jobs.Error{Kind: jobs.ErrFull, What: "no space or no inodes left for " + path, Err: err,
			Why: []string{err.Error(), "nothing was written"}, Hint: "free some space on its disk, then again"}
	default:
		return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot open " + path, Err: err, Why: []string{err.Error()}}
	}
}

// ErrReadOnly returns the error of a write to a database that was opened for reading. The parameter err is the cause, or nil.
func ErrReadOnly(path string, err error) error {
	return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot write " + path, Err: err,
		Why: []string{"the database was opened with Options.ReadOnly"}, Hint: "open it without Options.ReadOnly"}
}
