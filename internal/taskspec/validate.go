package taskspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Validate returns Spec.Err, or the first error that it finds in the Spec, a
// *jobs.FieldError.
func Validate(s *jobs.Spec) error {
	if s.Err != nil {
		return s.Err
	}
	if err := cmp.Or(ValidJob(s.Job), ValidKey("created_by", s.CreatedBy), validArgs(s)); err != nil {
		return err
	}

	defaults := hasDefaults(&s.Options)
	for _, option := range Options {
		if defaults && option.stored != nil {
			continue
		}
		if option.Commands && s.Job != command.Job && !option.Field(s).Zero() {
			return invalid("job", "%s belongs to commands, not to %s", option.Key, s.Job)
		}
		if err := option.Field(s).check(option); err != nil {
			return err
		}
	}

	return validCombination(s)
}

// CheckCommand validates the options of a task that runs a command, but not the
// command itself. A worker calls it because nobody has called Validate for a
// task that was added with SQL.
func CheckCommand(t *jobs.Task) error {
	s := jobs.Spec{Job: t.Job, Options: t.Options}
	for _, option := range Options {
		if option.Commands || option.Key == "retry_on" {
			if err := option.Field(&s).check(option); err != nil {
				return err
			}
		}
	}

	return nil
}

// validCombination checks options that may contradict each other.
func validCombination(s *jobs.Spec) error {
	u, keyed, keySize := &s.Unique, s.UniqueKey != "" || s.Unique.Args, len(keyPrefix(s))+len(s.UniqueKey)
	if u.Args {
		keySize += 1 + argsHashSize
	}
	switch {
	case u.Replace && !keyed:
		return invalid("unique_mode", "replace needs unique_key or unique_args")
	case u.UntilStart && !keyed:
		return invalid("unique_mode", "until-start needs unique_key or unique_args")
	case u.For != 0 && !keyed:
		return invalid("unique_for", "needs unique_key or unique_args")
	case len(u.States) > 0 && !keyed:
		return invalid("unique_states", "needs unique_key or unique_args")
	case keyed && keySize > MaxText:
		return invalid("unique_key", "%d bytes with the job and the hash of unique_args; at most %d", keySize, MaxText)
	case !s.RunAt.IsZero() && s.In != 0:
		return invalid("run_at", "give a time or a delay, not both")
	case !s.ExpiresAt.IsZero() && s.ExpiresIn != 0:
		return invalid("expires_at", "give a time or a delay, not both")
	case s.Batch < jobs.NewBatch:
		return invalid("batch", "%d is not the id of a batch", s.Batch)
	case s.RetryOn != "" && s.MaxAttempts < 2:
		return invalid("retry_on", "needs max_attempts above 1")
	case len(s.DependsOn)+len(s.DependsOnEarlier) > MaxAfter:
		return invalid("after", "%d tasks; at most %d", len(s.DependsOn)+len(s.DependsOnEarlier), MaxAfter)
	case len(s.DependsOnAny)+len(s.DependsOnAnyEarlier) > MaxAfter:
		return invalid("after_any", "%d tasks; at most %d", len(s.DependsOnAny)+len(s.DependsOnAnyEarlier), MaxAfter)
	}

	return nil
}

// ValidKey checks a key of the user, such as that of a lane.
func ValidKey(field, text string) error {
	if len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return invalid(field, "%q: at most %d bytes of UTF-8 without control characters", text, MaxText)
	}
	return nil
}

// ValidCursor checks the name of a cursor of ConsumeFinished in package runner.
func ValidCursor(name string) error {
	if name == "" {
		return invalid("cursor", "the name is empty")
	}
	return ValidKey("cursor", name)
}

func validArgs(s *jobs.Spec) error {
	switch {
	case len(s.Args) > MaxArgs:
		return invalid("args", "%d bytes; at most %d", len(s.Args), MaxArgs)
	case s.Args != nil && !json.Valid(s.Args):
		return invalid("args", "not JSON")
	case !utf8.Valid(s.Args):
		return invalid("args", "not UTF-8")
	case usercode.Depth(s.Args) > usercode.MaxDepth:
		return invalid("args", "nested more than %d deep", usercode.MaxDepth)
	}

	if s.Job == command.Job && !isPlainArgv(s.Args) {
		_, err := Argv(s.Args)
		return err
	}

	return nil
}

func validPath(field, path string) error {
	if err := validText(field, path, MaxPath); err != nil {
		return err
	}
	if !filepath.IsAbs(path) {
		return invalid(field, "%q is not absolute", path)
	}
	return nil
}

func validHook(field, command string) error { return validText(field, command, MaxPath) }

func validEvent(field, event string) error {
	if !slices.Contains(Events, event) {
		return invalid(field, "invalid value %q; use one of %s", event, strings.Join(Events, ", "))
	}
	return nil
}

func validVariable(field, name string) error {
	if name == "" || strings.Contains(name, "=") {
		return invalid(field, "invalid variable name %q", name)
	}
	return validText(field, name, MaxEnv)
}

// ValidMetadataKey checks a key of metadata, which has the form of a job's
// name.
func ValidMetadataKey(key string) error { return validMetadataKey("metadata", key) }

func validMetadataKey(field, key string) error { return validName(field, key, jobMarks) }

func validText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return invalid(field, "%d bytes; at most %d", len(text), limit)
	case !utf8.ValidString(text):
		return invalid(field, "%q is not UTF-8", text)
	case strings.IndexByte(text, 0) >= 0:
		return invalid(field, "%q holds a NUL byte", text)
	}
	return nil
}

// ValidQueue checks the name of a queue: [A-Za-z0-9][A-Za-z0-9._-]{0,99}.
func ValidQueue(name string) error { return validName("queue", name, "._-") }

// ValidJob checks the name of a job: [A-Za-z0-9][A-Za-z0-9._:/-]{0,99}.
func ValidJob(name string) error { return validName("job", name, jobMarks) }

// jobMarks are what a job's name may contain besides letters and digits.
const jobMarks = "._-:/"

func validName(field, name, marks string) error {
	ok := 0 < len(name) && len(name) <= MaxName
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && strings.IndexByte(marks, c) >= 0
	}

	if !ok {
		return invalid(field, "invalid name %q; use a letter or digit, then at most %d letters, digits or %s", name, MaxName-1, marks)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &jobs.FieldError{Field: field, Msg: fmt.Sprintf(format, args...)}
}
