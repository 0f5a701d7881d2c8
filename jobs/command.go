package jobs

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/usercode"
)

// Command is a program with its arguments. A task runs either a command or a
// registered function. A command runs without a shell, and its arguments are
// passed unchanged. Shell makes a command that uses a shell. A task stores the
// argv in its Args, as a JSON array of strings. An argument that is not UTF-8
// is an object with its bytes as base64, such as {"base64": "YQ//"}.
type Command struct {
	Argv    []string
	Path    string            // absolute path of the program; if empty, the worker looks up Argv[0] in its PATH
	Dir     string            // absolute path of the working directory; if empty, that of the worker
	Env     map[string]string // added to the worker's environment; stored in the database
	EnvFile string            // absolute path of a file of NAME=VALUE lines, read at each start and never stored
	Input   []byte            // standard input; if nil, /dev/null
}

// Shell returns a command that runs a script in the system's shell: /bin/sh -c,
// or cmd.exe on Windows.
func Shell(script string) Command {
	if runtime.GOOS == "windows" {
		return Command{Argv: []string{"cmd.exe", "/d", "/s", "/c", script}}
	}
	return Command{Argv: []string{"/bin/sh", "-c", script}, Path: "/bin/sh"}
}

// With returns the Spec of a task that runs the command. MaxAttempts defaults
// to 1. With does not fail: if the command is invalid, Spec.Err is set, and
// Enqueue returns it.
func (c Command) With(options ...Option) Spec {
	s := newSpec(CommandJob, []Option{MaxAttempts(commandAttempts)}, options)
	s.Path, s.Cwd, s.Env, s.EnvFile, s.Input = c.Path, c.Dir, c.Env, c.EnvFile, c.Input
	for i, word := range c.Argv {
		if strings.IndexByte(word, 0) >= 0 {
			s.Err = invalid("args", "argument %d, %q, holds a NUL byte", i+1, word)
			return s
		}
	}

	args, err := marshalArgv(c.Argv)
	s.setArgs(args, err)
	return s
}

// marshalArgv encodes the words of a command. A word that isn't UTF-8 becomes
// {"base64": "..."}, because encoding/json would change its bytes.
func marshalArgv(argv []string) (json.RawMessage, error) {
	if !slices.ContainsFunc(argv, func(word string) bool { return !utf8.ValidString(word) }) {
		return usercode.Marshal(argv) // in half the time
	}

	words := make([]any, len(argv))
	for i, word := range argv {
		words[i] = word
		if !utf8.ValidString(word) {
			words[i] = map[string][]byte{"base64": []byte(word)}
		}
	}

	return usercode.Marshal(words)
}
