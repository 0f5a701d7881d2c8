package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/pattern"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Files copies the output of commands to files in a directory. Each attempt has one file: 41-1.log contains the output of attempt 1 of task
// 41, stdout and stderr in the order in which they arrive. If an attempt is lost because its worker died, the next attempt has the same
// number and appends to the same file. Files of a task are deleted after the task is deleted.
//
// A write error does not fail the task. The worker logs the error, and the rest of that output is only in the database.
type Files struct {
	root *os.Root
	path string
	most int64 // size at which a full file is renamed and a new one begins; 0 for no limit
	log  *slog.Logger

	mu   sync.Mutex
	open map[attemptOf]*outputFile
}

type attemptOf struct{ id, generation int64 }

// outputFile is the file of a running attempt.
type outputFile struct {
	mu     sync.Mutex
	name   string
	file   *os.File // nil until the command prints something
	size   int64
	failed bool
}

const (
	ownerFile  = "database" // name of a file that contains the path of the database whose output is in the directory
	oldEnd     = ".1"       // added to the name of a file that has reached its maximum size
	sweepEvery = 10 * time.Minute
	sweepTasks = 500 // maximum number of tasks that one query looks up
)

// outputName matches the name of a file with output.
var outputName = pattern.Lazy(`^([1-9][0-9]{0,17})-[0-9]+\.log(\.1)?$`)

// OpenFiles opens the directory at path for the output of the tasks of r. It creates the directory if it is missing. The parameter "most"
// is the maximum size of a file in bytes; 0 means no limit.
func OpenFiles(r *runner.Runner, path string, most int64, log *slog.Logger) (*Files, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, directoryError(path, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, directoryError(path, err)
	}
	info, err := root.Stat(".")
	if err == nil && info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows" {
		err = errors.New("other users can write it")
	}
	if err == nil {
		err = claimDirectory(root, admin.Directory(r))
	}
	if err != nil {
		_ = root.Close()
		return nil, directoryError(path, err)
	}
	return &Files{root: root, path: path, most: most, log: log, open: map[attemptOf]*outputFile{}}, nil
}

func directoryError(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return &failure.Error{Code: "permission", Exit: 1, What: "cannot use --log-dir " + path, Why: []string{err.Error()}, Cause: err}
}

// claimDirectory records that a directory belongs to this database. It returns an error if the directory belongs to another database. Two
// databases must not share a directory, because they may have tasks with the same ids.
func claimDirectory(root *os.Root, database string) error {
	file, err := root.OpenFile(ownerFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(database + "\n")
		return errors.Join(err, file.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	text, err := fs.ReadFile(root.FS(), ownerFile)
	if other := strings.TrimSpace(string(text)); err == nil && other != database {
		return fmt.Errorf("it has the output of another database, %s; use another directory, or delete its file %q", other, ownerFile)
	}
	return err
}

// Close closes the directory.
func (f *Files) Close() error { return f.root.Close() }

// Record returns a copy of the handler h that also opens and closes a file for each attempt. Copy writes the output of the attempt to this
// file.
func (f *Files) Record(h jobs.Handler) jobs.Handler {
	run := h.Run
	h.Run = func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
		key := attemptOf{task.ID, task.GenerationID}
		file := &outputFile{name: fmt.Sprintf("%d-%d.log", task.ID, task.Attempt)}
		f.mu.Lock()
		f.open[key] = file
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			delete(f.open, key)
			f.mu.Unlock()
			f.end(task, file)
		}()
		return run(ctx, task)
	}
	return h
}

// Copy writes output to the file of its attempt. It is a function for runner.CommandOptions.Tee.
func (f *Files) Copy(task jobs.Task, _ string, data []byte) {
	f.mu.Lock()
	file := f.open[attemptOf{task.ID, task.GenerationID}]
	f.mu.Unlock()
	if file == nil || len(data) == 0 {
		return
	}
	file.mu.Lock()
	defer file.mu.Unlock()
	if file.failed {
		return
	}
	if err := f.write(file, data); err != nil {
		file.failed = true
		f.report(task, file, err)
	}
}

func (f *Files) report(task jobs.Task, file *outputFile, err error) {
	f.log.Error("cannot write an output file: the rest of this output is only in the database", "task", task.ID,
		"file", filepath.Join(f.path, file.name), "err", err)
}

func (f *Files) write(file *outputFile, data []byte) (err error) {
	if f.most > 0 && file.size > 0 && file.size+int64(len(data)) > f.most {
		err = errors.Join(file.file.Close(), f.root.Rename(file.name, file.name+oldEnd))
		file.file, file.size = nil, 0
	}
	if file.file == nil && err == nil {
		if file.file, err = f.root.OpenFile(file.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			file.size, err = file.file.Seek(0, io.SeekEnd)
		}
	}
	if err == nil {
		var n int
		n, err = file.file.Write(data)
		file.size += int64(n)
	}
	return err
}

// end closes the file of an attempt after the attempt has ended.
func (f *Files) end(task jobs.Task, file *outputFile) {
	file.mu.Lock()
	defer file.mu.Unlock()
	if file.file == nil {
		return
	}
	if err := file.file.Close(); err != nil && !file.failed {
		f.report(task, file, err)
	}
	file.file, file.failed = nil, true
}

// Sweep deletes the files of deleted tasks at once and then every ten minutes, until ctx ends.
func (f *Files) Sweep(ctx context.Context, r *runner.Runner) {
	timer := time.NewTicker(sweepEvery)
	defer timer.Stop()
	for {
		if n, err := f.sweep(ctx, r); err != nil && ctx.Err() == nil {
			f.log.Warn("cannot delete the output files of deleted tasks", "dir", f.path, "err", err)
		} else if n > 0 {
			f.log.Info("deleted the output files of deleted tasks", "files", humanize.Count(int64(n)))
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// sweep deletes the files of deleted tasks once. It returns the number of deleted files.
func (f *Files) sweep(ctx context.Context, r *runner.Runner) (deleted int, err error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return 0, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return 0, err
	}
	files := map[int64][]string{} // for each task id, the names of its files
	for _, name := range names {
		if match := outputName().FindStringSubmatch(name); match != nil {
			id, _ := strconv.ParseInt(match[1], 10, 64) // at most 18 digits always fit into an int64
			files[id] = append(files[id], name)
		}
	}
	ids := make([]int64, 0, len(files))
	for id := range files {
		ids = append(ids, id)
	}
	for part := range slices.Chunk(ids, sweepTasks) {
		left, err := r.IDs(ctx, jobs.Filter{IDs: part}, runner.Page{})
		if err != nil {
			return deleted, err
		}
		for _, id := range part {
			if slices.Contains(left, id) {
				continue
			}
			for _, name := range files[id] {
				if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return deleted, err
				}
				deleted++
			}
		}
	}
	return deleted, nil
}
