package ops

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
)

// Invocation is the working directory and PATH of the process that enqueues a
// task.
type Invocation struct {
	Dir       string // working directory
	Path      string // $PATH
	Elsewhere bool   // whether tasks may run on another machine, so that only a worker can look for files
}

func Current(getenv func(string) string) (Invocation, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Invocation{}, ui.Usage("this shell's working directory is gone").
			Because(humanize.Reason(err).Error()).Hint("cd to one that exists")
	}
	return Invocation{Dir: dir, Path: getenv("PATH")}, nil
}

// Absolute makes a path absolute that is relative to the caller's directory. An
// empty path stays empty.
func (c Invocation) Absolute(path string) string { return resolve(c.Dir, path) }

// resolve makes a path absolute that is relative to dir. It keeps "..", because
// after a symbolic link that leads to another directory than the text suggests.
func resolve(dir, path string) string {
	switch {
	case path == "" || filepath.IsAbs(path):
		return path
	case strings.Contains(path, ".."):
		return strings.TrimSuffix(dir, "/") + "/" + path
	}
	return filepath.Join(dir, path)
}

// Shells exit with these statuses if they can't start a command.
const (
	statusCannotExecute = 126
	StatusNotFound      = 127
)

// Find returns the absolute path of a program. A name with a slash is relative
// to cwd; any other is looked up in the caller's PATH. The error has the exit
// status 126 or 127.
func (c Invocation) Find(name, cwd string) (string, *ui.Error) {
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, os.PathSeparator) {
		path := resolve(cwd, name)
		found, err := exec.LookPath(path)
		if err != nil {
			return "", c.noFile(name, path, err)
		}
		return found, nil
	}

	denied := ""
	for _, dir := range filepath.SplitList(c.Path) {
		path := strings.TrimSuffix(c.Absolute(cmp.Or(dir, ".")), "/") + "/" + name
		found, err := exec.LookPath(path)
		if err == nil {
			return found, nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && denied == "" {
			denied = path
		}
	}

	if denied != "" {
		return "", c.noFile(denied, denied, fs.ErrPermission)
	}

	return "", c.notInPath(name, cwd)
}

func (c Invocation) notInPath(name, cwd string) *ui.Error {
	path := "PATH=" + c.Path + "  (cron gives scripts a short PATH)"
	if c.Path == "" {
		path = "PATH is empty"
	}
	f := StartFailure(StatusNotFound, "%q not found in PATH", name).Because(path).
		Hint("the full path, or --no-resolve if only the worker has it")
	if info, err := os.Stat(filepath.Join(cwd, name)); err == nil && info.Mode().IsRegular() {
		f.Try = "./" + name
	}
	return f
}

func (c Invocation) noFile(name, path string, err error) *ui.Error {
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return StartFailure(statusCannotExecute, "%q is a directory", name)
	}

	var f *ui.Error
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		f = StartFailure(StatusNotFound, "%q not found", name).Hint("--no-resolve if only the worker has it")
	} else {
		f = StartFailure(statusCannotExecute, "%q cannot be executed: %v", name, humanize.Reason(err))
	}
	if path != name {
		f.Because("looked at " + path)
	}
	if f.Exit == statusCannotExecute && runtime.GOOS != "windows" {
		f.Hint("chmod +x %s", path)
	}

	return f
}

func StartFailure(exit int, format string, args ...any) *ui.Error {
	return &ui.Error{Code: "start", Exit: exit, What: fmt.Sprintf(format, args...)}
}

// WorkDir returns a command's working directory: the value of --cwd, relative
// to the caller's directory, or that directory. It must exist, unless the
// command may run elsewhere.
func (c Invocation) WorkDir(dir string) (string, error) {
	cwd := c.Absolute(dir)
	if cwd == "" {
		return c.Dir, nil
	}
	if c.Elsewhere {
		return cwd, nil
	}

	info, err := os.Stat(cwd)
	switch {
	case err != nil:
		return "", ui.Usage("--cwd %q: %v", dir, humanize.Reason(err))
	case !info.IsDir():
		return "", ui.Usage("--cwd %q: not a directory", dir)
	}

	return cwd, nil
}

// Environment returns the variables for the values of -e, which are NAME=VALUE
// or only the NAME of one of the caller's variables. With all it also returns
// every other variable of the caller. Errors never contain a variable's value.
func Environment(settings []string, all bool) (map[string]string, error) {
	env := map[string]string{}
	if all {
		for _, setting := range os.Environ() {
			// Windows has variables such as "=C:"
			if name, value, found := strings.Cut(setting, "="); found && name != "" {
				env[name] = value
			}
		}
	}

	for _, setting := range settings {
		name, value, found := strings.Cut(setting, "=")
		if !found {
			if value, found = os.LookupEnv(name); !found {
				return nil, ui.Usage("--env %s: there is no such variable here", name).Hint("--env %s=VALUE", name)
			}
		}
		env[name] = value
	}

	for name, value := range env {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, ui.Usage("the value of the variable %q is not UTF-8", name)
		}
	}

	return env, nil
}

// ReadSource returns the content of a file, or stdin if the name is "-". It
// returns an error if the content exceeds limit bytes. The error begins with
// option, such as "--args ".
func ReadSource(option, name string, limit int, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name == "-" {
		name = "stdin"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, ui.Usage("%s%q: %v", option, name, humanize.Reason(err))
		}
		defer file.Close()
		in = file
	}

	text, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	switch {
	case err != nil:
		return nil, ui.Usage("%s%q: %v", option, name, humanize.Reason(err))
	case len(text) > limit:
		return nil, ui.Usage("%s%q: too large; at most %s", option, name, humanize.ExactSize(int64(limit)))
	}

	return text, nil
}

// ReadArgs reads the value of --args: JSON, @FILE or "-".
func ReadArgs(text string, stdin io.Reader) ([]byte, error) {
	file, isFile := strings.CutPrefix(text, "@")
	if text == "-" {
		file, isFile = "-", true
	}
	if !isFile {
		return []byte(text), nil
	}
	return ReadSource("--args ", file, taskspec.MaxArgs, stdin)
}
