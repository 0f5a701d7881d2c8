package jobs

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Validate returns the first error in the Spec: Err, or a *FieldError.
func (s *Spec) Validate() error {
	if s.Err != nil {
		return s.Err
	}
	for _, check := range []func() error{s.validateNames, s.validateArgs, s.validateNumbers, s.validateAfter, s.validateCommand} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) validateNames() error {
	if err := ValidJob(s.Job); err != nil {
		return err
	}
	if err := ValidQueue(s.Queue); err != nil {
		return err
	}
	for _, named := range [][2]string{{"label", s.Label}, {"lane", s.Lane}, {"unique_key", s.UniqueKey}, {"created_by", s.CreatedBy}} {
		if err := validKey(named[0], named[1]); err != nil {
			return err
		}
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

func (s *Spec) validateAfter() error {
	for _, d := range []struct {
		field   string
		ids     []int64
		earlier []int
	}{{"after", s.After, s.Earlier}, {"after_any", s.AfterAny, s.EarlierAny}} {
		if n := len(d.ids) + len(d.earlier); n > MaxAfter {
			return invalid(d.field, "%d tasks; at most %d", n, MaxAfter)
		}
		for _, id := range d.ids {
			if id < 1 {
				return invalid(d.field, "%d is no task id", id)
			}
		}
	}
	return nil
}

func (s *Spec) validateArgs() error {
	switch {
	case len(s.Args) > MaxArgs:
		return invalid("args", "%d bytes; at most %d", len(s.Args), MaxArgs)
	case s.Args != nil && !json.Valid(s.Args):
		return invalid("args", "not JSON")
	case !utf8.Valid(s.Args):
		return invalid("args", "not UTF-8")
	case depth(s.Args) > MaxDepth:
		return invalid("args", "nested more than %d deep", MaxDepth)
	}
	if s.Job == CommandJob && !isPlainArgv(s.Args) {
		_, err := Argv(s.Args)
		return err
	}
	return nil
}

// depth returns the nesting depth of objects and arrays in valid JSON.
func depth(text []byte) int {
	deep, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			deep++
			deepest = max(deepest, deep)
		case c == ']' || c == '}':
			deep--
		}
	}
	return deepest
}

func (s *Spec) validateNumbers() error {
	durations := []struct {
		field string
		value time.Duration
	}{{"in", s.In}, {"expires_in", s.ExpiresIn}, {"timeout", s.Timeout}, {"kill_after", s.KillAfter},
		{"backoff_delay", s.Backoff.Delay}, {"backoff_max", s.Backoff.Max}}
	for _, d := range durations {
		if d.value < 0 || d.value > MaxDelay {
			return invalid(d.field, "%v is out of range (0 to 10 years)", d.value)
		}
	}
	switch {
	case s.Priority < math.MinInt32 || s.Priority > math.MaxInt32:
		return invalid("priority", "%d is no 32-bit number", s.Priority)
	case s.MaxAttempts < 0 || s.MaxAttempts > math.MaxInt32:
		return invalid("max_attempts", "%d is out of range (1 or more)", s.MaxAttempts)
	case s.MaxLosses < 0 || s.MaxLosses > math.MaxInt32:
		return invalid("max_losses", "%d is out of range (0 or more)", s.MaxLosses)
	case s.OutputLimit < 0:
		return invalid("output_limit", "%d is negative", s.OutputLimit)
	case !slices.Contains([]Strategy{Fixed, Linear, Exponential}, s.Backoff.Strategy):
		return invalid("backoff", "%q is none of fixed, linear, exponential", s.Backoff.Strategy)
	case !s.RunAt.IsZero() && (s.RunAt.Year() < 1970 || s.RunAt.Year() > 9999):
		return invalid("run_at", "year %d is out of range", s.RunAt.Year())
	case s.Replace && s.UniqueKey == "":
		return invalid("unique_mode", "replace needs a unique_key")
	case !s.RunAt.IsZero() && s.In != 0:
		return invalid("run_at", "give a time or a delay, not both")
	case !s.ExpiresAt.IsZero() && (s.ExpiresAt.Year() < 1970 || s.ExpiresAt.Year() > 9999):
		return invalid("expires_at", "year %d is out of range", s.ExpiresAt.Year())
	case !s.ExpiresAt.IsZero() && s.ExpiresIn != 0:
		return invalid("expires_at", "give a time or a delay, not both")
	}
	if len(s.RetryOn) > MaxCodes {
		return invalid("retry_on", "%d bytes; at most %d", len(s.RetryOn), MaxCodes)
	}
	if err := s.RetryOn.Validate(); err != nil {
		return invalid("retry_on", "%v", err)
	}
	if s.RetryOn != "" && s.MaxAttempts < 2 {
		return invalid("retry_on", "needs max_attempts above 1")
	}
	return nil
}

func (s *Spec) validateCommand() error {
	if s.Job != CommandJob && (s.Path != "" || s.Cwd != "" || len(s.Env) > 0 || s.EnvFile != "" || len(s.Input) > 0) {
		return invalid("job", "path, cwd, env, env_file and input belong to commands, not to %s", s.Job)
	}
	if len(s.Input) > MaxInput {
		return invalid("input", "%d bytes; at most %d", len(s.Input), MaxInput)
	}
	for _, named := range [][2]string{{"path", s.Path}, {"cwd", s.Cwd}, {"env_file", s.EnvFile}} {
		field, path := named[0], named[1]
		if err := validText(field, path, MaxPath); err != nil {
			return err
		}
		if path != "" && !filepath.IsAbs(path) {
			return invalid(field, "%q is not absolute", path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if name == "" || strings.Contains(name, "=") {
			return invalid("env", "%q is no name of a variable", name)
		}
		if err := cmpErr(validText("env", name, MaxEnv), validText("env", s.Env[name], MaxEnv)); err != nil {
			return err
		}
	}
	if len(s.Env) > 0 {
		if object, err := MarshalArgs(s.Env); err != nil || len(object) > MaxEnv { // in the stored form, where some characters take six bytes
			return invalid("env", "%d bytes as JSON; at most %d", len(object), MaxEnv)
		}
	}
	return nil
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

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
func ValidJob(name string) error { return validName("job", name, "._-:/") }

func validName(field, name, marks string) error {
	ok := 0 < len(name) && len(name) <= MaxName
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && strings.IndexByte(marks, c) >= 0
	}
	if !ok {
		return invalid(field, "%q is no name: a letter or digit, then at most %d letters, digits or %s", name, MaxName-1, marks)
	}
	return nil
}
