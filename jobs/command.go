package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// Command is a program with its arguments. A task runs either a command or a registered function. A command runs without a shell, and its
// arguments are passed unchanged. Shell makes a command that uses a shell.
type Command struct {
	Argv    []string
	Path    string            // absolute path of the program; if empty, the worker looks up Argv[0] in its PATH
	Dir     string            // absolute path of the working directory; if empty, that of the worker
	Env     map[string]string // added to the worker's environment; stored in the database
	EnvFile string            // absolute path of a file of NAME=VALUE lines, read at each start and never stored
	Input   []byte            // standard input; if nil, /dev/null
}

// Shell returns a command that runs a script in the system's shell: /bin/sh -c, or cmd.exe on Windows.
func Shell(script string) Command {
	if runtime.GOOS == "windows" {
		return Command{Argv: []string{"cmd.exe", "/d", "/s", "/c", script}}
	}
	return Command{Argv: []string{"/bin/sh", "-c", script}, Path: "/bin/sh"}
}

// With returns the Spec of a task that runs the command. MaxAttempts defaults to 1. With does not fail: if the command is invalid,
// Spec.Err is set, and Enqueue returns it.
func (c Command) With(options ...Option) Spec {
	s := newSpec(CommandJob, []Option{MaxAttempts(CommandAttempts)}, options)
	s.Path, s.Cwd, s.Env, s.EnvFile, s.Input = c.Path, c.Dir, c.Env, c.EnvFile, c.Input
	for i, word := range c.Argv {
		if strings.IndexByte(word, 0) >= 0 {
			s.Err = invalid("args", "argument %d, %q, holds a NUL byte", i+1, word)
			return s
		}
	}
	args, err := marshalArgv(c.Argv)
	s.Args, s.Err = args, cmp.Or(s.Err, err)
	return s
}

// argument is a word of an argv as JSON. A word that is not UTF-8 is an object, because encoding/json would replace its bytes.
type argument string

// encoded is the object of an argument that is not UTF-8. encoding/json converts the bytes to base64.
type encoded struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (a argument) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(a)) {
		return MarshalArgs(string(a))
	}
	return json.Marshal(encoded{[]byte(a)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *argument) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return json.Unmarshal(text, (*string)(a))
	}
	var e encoded
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&e)
	*a = argument(e.Base64)
	return err
}

// marshalArgv encodes an argv. A word that is not UTF-8 becomes {"base64": "..."}.
func marshalArgv(argv []string) (json.RawMessage, error) {
	if !slices.ContainsFunc(argv, func(word string) bool { return !utf8.ValidString(word) }) {
		return MarshalArgs(argv)
	}
	words := make([]argument, len(argv))
	for i, word := range argv {
		words[i] = argument(word)
	}
	return MarshalArgs(words)
}

// Argv parses the arguments of a command. They are a JSON array of strings whose first string is not empty. An argument that is not UTF-8
// is an object with its bytes as base64, such as {"base64": "YQ//"}.
func Argv(args json.RawMessage) ([]string, error) {
	var words []*argument
	if err := json.Unmarshal(args, &words); err != nil || len(words) == 0 {
		return nil, invalid("args", "a command needs a JSON array of strings, its argv")
	}
	argv := make([]string, len(words))
	for i, word := range words {
		if word == nil || strings.IndexByte(string(*word), 0) >= 0 {
			return nil, invalid("args", "argument %d of the command is not a string, or contains a NUL byte", i+1)
		}
		argv[i] = string(*word)
	}
	if argv[0] == "" {
		return nil, invalid("args", "the command is empty")
	}
	return argv, nil
}

// MarshalArgs encodes a value as the JSON that tasks store: without a newline, and with <, > and & unescaped.
func MarshalArgs(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, invalid("args", "%v", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
