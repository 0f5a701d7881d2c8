package taskspec

import (
	"bytes"
	"encoding/json"

	"example.com/runner/internal/taskjson"
	"example.com/runner/jobs"
)

// CheckCommand validates the options of a task that runs a command. It does not check the command itself. Workers call it, because a user
// may have added the task with SQL, and then nobody has called Validate. The error is a *FieldError.
func CheckCommand(t *jobs.Task) error {
	s := jobs.Spec{Job: t.Job, Options: t.Options}
	for i := range taskOptions {
		if option := &taskOptions[i]; option.Commands || option.Key == "retry_on" {
			if err := option.Field(&s).check(option); err != nil {
				return err
			}
		}
	}
	return nil
}

// isPlainArgv is a fast check, ten times as fast as Argv. If it returns true, Argv accepts the JSON. If it returns false, Argv may accept
// or reject the JSON. It returns false if the JSON contains an escape, because the escape could stand for a NUL byte.
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

// Argv decodes the words of a command; see taskjson.Argv. Its errors are of type *jobs.FieldError.
func Argv(args json.RawMessage) ([]string, error) {
	argv, err := taskjson.Argv(args)
	if err != nil {
		return nil, invalid("args", "%v", err)
	}
	return argv, nil
}
