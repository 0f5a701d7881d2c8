package jobs

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs/command"
)

// Command returns the Spec of a task that runs a command. MaxAttempts defaults
// to 1. The task stores the argv in its Args, as a JSON array of strings. An
// argument that is not UTF-8 is an object with its bytes as base64, such as
// {"base64": "YQ//"}. Command does not fail: if the command is invalid,
// Spec.Err is set, and Enqueue returns it.
func Command(c command.Command, options ...Option) Spec {
	s := newSpec(command.Job, []Option{MaxAttempts(commandAttempts), settings(c.Settings)}, options)
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

// settings sets the Settings of a command with their defaults.
func settings(c command.Settings) Option {
	return func(s *Spec) {
		c.KillAfter = orDefault(c.KillAfter, s.KillAfter)
		c.OutputLimit = orDefault(c.OutputLimit, s.OutputLimit)
		s.Settings = c
	}
}

// orDefault returns the number that applies; 0 for a negative one.
func orDefault[N ~int64](n, instead N) N {
	if n == 0 {
		return instead
	}
	return max(n, 0)
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
