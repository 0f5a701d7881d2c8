package jobs

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Command is an argv to run: the other kind of job beside registered functions. It is executed without a shell, byte for
// byte; Shell asks for one.
type Command struct {
	Argv    []string
	Path    string            // absolute path of the program; empty: the worker looks Argv[0] up in its PATH
	Dir     string            // absolute; empty: the worker's
	Env     map[string]string // added to the worker's environment, and kept in the database
	EnvFile string            // absolute path of NAME=VALUE lines, read at each start and never stored
	Input   []byte            // stdin; nil: /dev/null
}

// Shell returns the command that runs script in the system's shell: /bin/sh -c, or on Windows cmd.exe.
func Shell(script string) Command {
	if runtime.GOOS == "windows" {
		return Command{Argv: []string{"cmd.exe", "/d", "/s", "/c", script}}
	}
	return Command{Argv: []string{"/bin/sh", "-c", script}, Path: "/bin/sh"}
}

// With makes the Spec of a task that runs the command, with max attempts 1 unless the options say otherwise. It cannot fail: a
// command that cannot be enqueued has its error in Spec.Err.
func (c Command) With(options ...Option) Spec {
	s := newSpec(CommandJob, []Option{MaxAttempts(CommandAttempts)}, options)
	s.Path, s.Cwd, s.Env, s.EnvFile, s.Input = c.Path, c.Dir, c.Env, c.EnvFile, c.Input
	for i, word := range c.Argv {
		if !utf8.ValidString(word) || strings.IndexByte(word, 0) >= 0 { // encoding/json would replace the bytes in silence
			s.Err = invalid("args", "argument %d, %q, is not UTF-8 or holds a NUL byte", i+1, word)
			return s
		}
	}
	s.Args, s.Err = MarshalArgs(c.Argv)
	return s
}

// Argv reads the arguments of a command: a JSON array of strings, the first of them not empty.
func Argv(args json.RawMessage) ([]string, error) {
	var words []*string
	if err := json.Unmarshal(args, &words); err != nil || len(words) == 0 {
		return nil, invalid("args", "a command needs a JSON array of strings, its argv")
	}
	argv := make([]string, len(words))
	for i, word := range words {
		if word == nil || strings.IndexByte(*word, 0) >= 0 {
			return nil, invalid("args", "argument %d of the command is no text, or holds a NUL byte", i+1)
		}
		argv[i] = *word
	}
	if argv[0] == "" {
		return nil, invalid("args", "the command is empty")
	}
	return argv, nil
}

// isPlainArgv says whether valid JSON is certainly an argv that Argv reads, which takes a tenth of the time. It is not sure of a text with
// escapes, which may stand for a NUL byte.
func isPlainArgv(args []byte) bool {
	if len(args) < 4 || args[0] != '[' || args[1] != '"' || args[2] == '"' || bytes.IndexByte(args, '\\') >= 0 {
		return false
	}
	quoted := false
	for _, c := range args[1 : len(args)-1] {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && c != ',' && c != ' ':
			return false
		}
	}
	return args[len(args)-1] == ']'
}

// CheckCommand returns what is wrong with the settings of a command, its argv apart, that has never been a Spec: plain SQL can enqueue
// what Validate would have refused. The error is a *FieldError.
func CheckCommand(t *Task) error {
	if err := t.RetryOn.Validate(); err != nil {
		return invalid("retry_on", "%v", err)
	}
	s := Spec{Job: t.Job, Options: t.Options}
	return s.validateCommand()
}

// MarshalArgs turns a value into JSON as tasks keep it: without a newline, and with <, > and & as they are.
func MarshalArgs(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, invalid("args", "%v", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
