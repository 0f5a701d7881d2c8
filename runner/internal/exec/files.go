package exec

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// This file passes data between the database and a command in three ways: the
// input on stdin, the results of earlier tasks in the file $RUNNER_UPSTREAM,
// and the result of the command in the file $RUNNER_RESULT. The names of these
// files are unique to the attempt, and they are in a directory that only this
// user can read.

// stdin returns the reading end of a pipe with the input of the task, the
// worker's own stdin if the task reads that, or nil for /dev/null.
func (c *Command) stdin() (*os.File, error) {
	switch {
	case c.Task.InputBytes == 0:
		return nil, nil
	case c.Task.InputBytes < 0 && c.Stdin == nil:
		return nil, startError(cannotExecute, "it reads the stdin of runner run, which has ended and was not stored")
	case c.Task.InputBytes < 0:
		return c.Stdin, nil
	}

	input, err := c.Store.Input(c.Stop, c.Task.ID)
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}

	r, w, err := os.Pipe()
	if err != nil {
		return nil, &NotStartedError{err}
	}
	if err := c.account.own(r); err != nil {
		r.Close()
		w.Close()
		return nil, &NotStartedError{err}
	}

	go func() {
		defer w.Close()
		_, _ = w.Write(input) // the write fails if the command ends without reading the whole input
	}()
	return r, nil
}

// makeFiles lets a command that runs as another user read and write the files
// that it shares with the worker. Only the worker's user can read the usual
// directory, Store.Dir(). So the command gets a directory of its own, which
// others can enter but not change, with an empty file for the result that
// belongs to its user. For other commands makeFiles does nothing. remove
// deletes the directory, and is never nil.
func (c *Command) makeFiles() (remove func(), err error) {
	if c.account == nil || os.Geteuid() != 0 {
		return func() {}, nil
	}
	if c.dir, err = os.MkdirTemp(sharedDir(c.Task.WorkerID, c.Task.ID, c.Task.GenerationID)); err != nil {
		return func() {}, err
	}

	remove = func() { _ = os.RemoveAll(c.dir) }
	if err := os.Chmod(c.dir, 0o711); err != nil {
		return remove, err
	}

	file, err := os.OpenFile(c.resultPath(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return remove, err
	}

	return remove, errors.Join(c.account.own(file), file.Close())
}

// sharedDir returns where makeFiles makes a directory, and the beginning of its
// name. It's in /tmp, because $TMPDIR may be in a directory that only the
// worker can enter.
func sharedDir(worker string, id, generation int64) (parent, name string) {
	return "/tmp", fmt.Sprintf("runner-%s-%d-%d-", worker, id, generation)
}

// RemoveShared removes what is left of the files that an attempt of a dead
// worker shared with its command.
func RemoveShared(store *db.DB, worker string, id, generation int64) {
	for _, name := range []string{"result", "upstream"} {
		_ = os.Remove(filepath.Join(store.Dir(), fmt.Sprintf("%s-%d-%d.json", name, id, generation)))
	}

	parent, name := sharedDir(worker, id, generation)
	left, _ := filepath.Glob(filepath.Join(parent, name+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

// filesDir returns the directory of the files that the command shares with the
// worker.
func (c *Command) filesDir() string { return cmp.Or(c.dir, c.Store.Dir()) }

// resultPath returns the path of the file to which the command may write its
// result.
func (c *Command) resultPath() string {
	return filepath.Join(c.filesDir(), fmt.Sprintf("result-%d-%d.json", c.Task.ID, c.Task.GenerationID))
}

// result reads and removes the file of $RUNNER_RESULT. The file may be missing
// or empty; otherwise it must contain JSON. Links aren't followed, and nothing
// waits for a FIFO's writer.
func (c *Command) result() (json.RawMessage, error) {
	path := c.resultPath()
	text, err := readRegular(context.Background(), path, openNoFollow, usercode.MaxResult)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	_ = os.Remove(path)
	if err != nil {
		return nil, fmt.Errorf("result: cannot read $RUNNER_RESULT: %w", humanize.Reason(err))
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, nil
	}

	return text, usercode.ValidResult(text)
}

// upstreamPath returns the path of the file $RUNNER_UPSTREAM.
func (c *Command) upstreamPath() string {
	return filepath.Join(c.filesDir(), fmt.Sprintf("upstream-%d-%d.json", c.Task.ID, c.Task.GenerationID))
}

// writeUpstream writes the results of the tasks that this task waited for to a
// file: a JSON object whose keys are the ids of the tasks. It writes one row at
// a time, because the results may be too large for the memory. remove deletes
// the file, and is never nil.
func (c *Command) writeUpstream() (remove func(), err error) {
	if !c.Task.Depends {
		return func() {}, nil
	}

	path := c.upstreamPath()
	remove = func() { _ = os.Remove(path) }
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|openNoFollow, 0o600)
	if err != nil {
		return remove, err
	}

	out := bufio.NewWriter(file)
	_, _ = out.WriteString("{") // a bufio.Writer keeps its error until Flush
	comma := ""
	err = c.Store.Upstream(c.Stop, c.Task.ID, func(t jobs.Task) error {
		_, err := fmt.Fprintf(out, `%s"%d":%s`, comma, t.ID, cmp.Or(string(t.Result), "null"))
		comma = ","
		return err
	})
	_, _ = out.WriteString("}\n")
	return remove, errors.Join(err, out.Flush(), c.account.own(file), file.Close())
}
