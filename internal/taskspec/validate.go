package taskspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// Validate returns the first error that it finds in the Spec. If Spec.Err is set, it returns that error. Otherwise the error is a
// *FieldError.
func Validate(s *jobs.Spec) error {
	if s.Err != nil {
		return s.Err
	}
	if err := ValidJob(s.Job); err != nil {
		return err
	}
	if err := validKey("created_by", s.CreatedBy); err != nil {
		return err
	}
	if err := validateArgs(s); err != nil {
		return err
	}
	defaults := hasDefaults(&s.Options)
	for _, option := range Options {
		if defaults && option.stored != nil {
			continue
		}
		if option.Commands && s.Job != jobs.CommandJob && !option.Field(s).Zero() {
			return invalid("job", "%s belongs to commands, not to %s", option.Key, s.Job)
		}
		if err := option.Field(s).check(option); err != nil {
			return err
		}
	}
	return validateTogether(s)
}

// validateTogether checks options that may contradict each other.
func validateTogether(s *jobs.Spec) error {
	keyed := s.UniqueKey != "" || s.UniqueArgs
	switch {
	case s.Replace && !keyed:
		return invalid("unique_mode", "replace needs unique_key or unique_args")
	case s.UntilStart && !keyed:
		return invalid("unique_mode", "until-start needs unique_key or unique_args")
	case s.UniqueFor != 0 && !keyed:
		return invalid("unique_for", "needs unique_key or unique_args")
	case s.UniqueStates != "" && !keyed:
		return invalid("unique_states", "needs unique_key or unique_args")
	case len(s.UniqueKey) > maxKey(s):
		return invalid("unique_key", "%d bytes; at most %d with unique_args", len(s.UniqueKey), maxKey(s))
	case !s.RunAt.IsZero() && s.In != 0:
		return invalid("run_at", "give a time or a delay, not both")
	case !s.ExpiresAt.IsZero() && s.ExpiresIn != 0:
		return invalid("expires_at", "give a time or a delay, not both")
	case s.Batch < jobs.NewBatch:
		return invalid("batch", "%d is not the id of a batch", s.Batch)
	case s.RetryOn != "" && s.MaxAttempts < 2:
		return invalid("retry_on", "needs max_attempts above 1")
	}
	return cmp.Or(fewEnough("after", len(s.After)+len(s.Earlier)), fewEnough("after_any", len(s.AfterAny)+len(s.EarlierAny)))
}

// fewEnough checks the number of tasks that a task waits for.
func fewEnough(field string, n int) error {
	if n > MaxAfter {
		return invalid(field, "%d tasks; at most %d", n, MaxAfter)
	}
	return nil
}

// validKey checks a label, lane or unique key.
func validKey(field, text string) error {
	if len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return invalid(field, "%q: at most %d bytes of UTF-8 without control characters", text, MaxText)
	}
	return nil
}

// maxKey returns the maximum length of UniqueKey in a Spec. It leaves room for the hash that UniqueArgs appends to the key.
func maxKey(s *jobs.Spec) int {
	most := MaxText
	if s.UniqueArgs {
		most -= len(":") + 32
	}
	return most
}

// validFinished checks a list of states that are separated by commas. All of them must be states of finished tasks.
func validFinished(field, text string) error {
	if text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !jobs.State(name).Finished() {
			return invalid(field, "%q is not completed, failed or cancelled; a task always holds its key until it finishes", name)
		}
	}
	return nil
}

// ValidCursor returns an error unless name is valid as the name of a cursor of OnFinished in package runner.
func ValidCursor(name string) error {
	if name == "" {
		return invalid("cursor", "the name is empty")
	}
	return validKey("cursor", name)
}

func validateArgs(s *jobs.Spec) error {
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
	if s.Job == jobs.CommandJob && !isPlainArgv(s.Args) {
		_, err := Argv(s.Args)
		return err
	}
	return nil
}

// validPath checks an absolute path.
func validPath(field, path string) error {
	if err := validText(field, path, MaxPath); err != nil {
		return err
	}
	if path != "" && !filepath.IsAbs(path) {
		return invalid(field, "%q is not absolute", path)
	}
	return nil
}

// validHook checks the command of a hook.
func validHook(field, command string) error { return validText(field, command, MaxPath) }

// validEvent checks the event that a hook reports.
func validEvent(field, event string) error {
	if event != "" && !slices.Contains(Events, event) {
		return invalid(field, "invalid value %q; use one of %s", event, strings.Join(Events, ", "))
	}
	return nil
}

// validTexts checks an option that is a map: the variables of a command, or metadata.
func (o *OptionInfo) validTexts(texts map[string]string) error {
	if len(texts) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		if err := cmp.Or(o.check(o.Key, key), validText(o.Key, texts[key], int(o.Max))); err != nil {
			return err
		}
	}
	if o.MaxKeys > 0 && len(texts) > o.MaxKeys {
		return invalid(o.Key, "%d keys; at most %d", len(texts), o.MaxKeys)
	}
	// The limit also applies to the whole map as JSON, where some characters take six bytes.
	if object, err := usercode.Marshal(texts); err != nil || int64(len(object)) > o.Max {
		return invalid(o.Key, "%d bytes as JSON; at most %d", len(object), o.Max)
	}
	return nil
}

// validVariable checks the name of an environment variable.
func validVariable(field, name string) error {
	if name == "" || strings.Contains(name, "=") {
		return invalid(field, "invalid variable name %q", name)
	}
	return validText(field, name, MaxEnv)
}

// validMetadataKey checks a key of metadata. The rules are the same as for the name of a job.
func validMetadataKey(field, key string) error { return validName(field, key, jobMarks) }

// ValidMetadataKey returns an error unless key is a valid key of metadata.
func ValidMetadataKey(key string) error { return validMetadataKey("metadata", key) }

func validText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return invalid(field, "%d bytes; at most %d", len(text), most)
	case !utf8.ValidString(text):
		return invalid(field, "%q is not UTF-8", text)
	case strings.IndexByte(text, 0) >= 0:
		return invalid(field, "%q holds a NUL byte", text)
	}
	return nil
}

// ValidQueue returns an error unless name is a valid name of a queue: [A-Za-z0-9][A-Za-z0-9._-]{0,99}.
func ValidQueue(name string) error { return validName("queue", name, "._-") }

// ValidJob returns an error unless name is a valid name of a job: [A-Za-z0-9][A-Za-z0-9._:/-]{0,99}.
func ValidJob(name string) error { return validName("job", name, jobMarks) }

// jobMarks are the characters, besides letters and digits, that the name of a job may contain.
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
