package taskspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

func commandTask(words ...string) jobs.Spec { return jobs.Command(command.Command{Argv: words}) }

// invalidField returns the field that an error of Validate names. It returns ""
// if err is nil.
func invalidField(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	problem, ok := errors.AsType[*jobs.FieldError](err)
	if !ok || !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("got error %v, want a FieldError that is %v", err, jobs.ErrInvalid)
		return "?"
	}
	return problem.Field
}

func TestSpecsFromWithAreValid(t *testing.T) {
	for name, s := range map[string]jobs.Spec{
		"command":  commandTask("true"),
		"shell":    jobs.Command(command.Shell("exit 1")),
		"function": jobs.Define[string]("email.send").With("x"),
		"everything": jobs.Command(command.Command{Argv: []string{"a", ""}, Path: "/bin/a", Dir: "/",
			Env: map[string]string{"A": ""}, EnvFile: "/e",
			Input: []byte("\x00")}, jobs.Queue("q"), jobs.Priority(math.MinInt32), jobs.Label("é"), jobs.In(MaxDelay),
			jobs.ExpiresIn(MaxDelay),
			jobs.Unique("k"),
			jobs.MaxAttempts(math.MaxInt32),
			jobs.MaxLosses(0), jobs.Timeout(1), func(s *jobs.Spec) { s.KillAfter = 0 }, jobs.WithBackoff(jobs.Backoff{Delay: MaxDelay}),
			func(s *jobs.Spec) { s.RetryOn = "1-255" }, func(s *jobs.Spec) { s.OutputLimit = 0 }),
	} {
		if err := Validate(&s); err != nil {
			t.Errorf("%s: got error %v, want none", name, err)
		}
	}
}

// invalidSpec is a change that makes a valid Spec invalid, and the field that
// the error of Validate must then name.
type invalidSpec struct {
	field  string
	change func(*jobs.Spec)
}

func checkInvalid(t *testing.T, cases []invalidSpec) {
	t.Helper()
	for i, c := range cases {
		s := commandTask("true")
		c.change(&s)
		if got := invalidField(t, Validate(&s)); got != c.field {
			t.Errorf("case %d: got field %q in error %.200v, want field %q", i, got, Validate(&s), c.field)
		}
		err, _ := errors.AsType[*jobs.FieldError](Validate(&s))
		text := FlagText(err)
		for _, o := range Options {
			if o.Key == c.field && o.Flag != "" && !strings.HasPrefix(text, "--"+o.Flag+": ") {
				t.Errorf("case %d: got %.200q, want --%s first", i, text, o.Flag)
			}
		}
		if key := regexp.MustCompile(`[a-z]_[a-z]`).FindString(text); key != "" {
			t.Errorf("case %d: got %.200q, want no key of JSON", i, text)
		}
	}
}

func TestValidateNamesInvalidField(t *testing.T) {
	long := strings.Repeat("x", MaxText+1)
	deep := json.RawMessage(strings.Repeat("[", usercode.MaxDepth+1) + strings.Repeat("]", usercode.MaxDepth+1))
	checkInvalid(t, []invalidSpec{
		{"job", func(s *jobs.Spec) { s.Job = "" }},
		{"job", func(s *jobs.Spec) { s.Job = "a b" }},
		{"job", func(s *jobs.Spec) { s.Job = ".a" }},
		{"job", func(s *jobs.Spec) { s.Job = strings.Repeat("a", MaxName+1) }},
		{"queue", func(s *jobs.Spec) { s.Queue = "" }},
		{"queue", func(s *jobs.Spec) { s.Queue = "a:b" }},
		{"queue", func(s *jobs.Spec) { s.Queue = "ä" }},
		{"queue", func(s *jobs.Spec) { s.Queue = strings.Repeat("a", MaxName+1) }},
		{"label", func(s *jobs.Spec) { s.Label = long }},
		{"label", func(s *jobs.Spec) { s.Label = "a\nb" }},
		{"label", func(s *jobs.Spec) { s.Label = "\xff" }},
		{"label", func(s *jobs.Spec) { s.Label = "\u009b31m" }}, // on a terminal, \u009b begins a colour sequence
		{"unique_key", func(s *jobs.Spec) { s.UniqueKey = long }},
		{"created_by", func(s *jobs.Spec) { s.CreatedBy = long }},
		{"unique_key", func(s *jobs.Spec) { s.UniqueKey = "\x00" }},
		{"args", func(s *jobs.Spec) { s.Args = nil }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage{} }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage("[]") }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage(`[""]`) }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage(`["a",null]`) }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage(`["a",1]`) }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage(`["a\u0000"]`) }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage("[\"a\x00\"]") }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage("[\"a\xff\"]") }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage(`"a"`) }},
		{"args", func(s *jobs.Spec) { s.Args = json.RawMessage(`["a"`) }},
		{"args", func(s *jobs.Spec) { s.Job, s.Args = "f", json.RawMessage(`{} {}`) }},
		{"args", func(s *jobs.Spec) { s.Job, s.Args = "f", deep }},
		{"args", func(s *jobs.Spec) { s.Job, s.Args = "f", json.RawMessage(`"`+strings.Repeat("x", MaxArgs)+`"`) }},
		{"in", func(s *jobs.Spec) { s.In = -1 }},
		{"in", func(s *jobs.Spec) { s.In = MaxDelay + 1 }},
		{"run_at", func(s *jobs.Spec) { s.RunAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"run_at", func(s *jobs.Spec) { s.RunAt = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"run_at", func(s *jobs.Spec) { s.RunAt, s.In = at, time.Second }},
		{"expires_in", func(s *jobs.Spec) { s.ExpiresIn = -1 }},
		{"expires_in", func(s *jobs.Spec) { s.ExpiresIn = MaxDelay + 1 }},
		{"expires_at", func(s *jobs.Spec) { s.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"expires_at", func(s *jobs.Spec) { s.ExpiresAt, s.ExpiresIn = at, time.Second }},
		{"job", func(s *jobs.Spec) { s.Job, s.Cwd = "f", "/" }},
		{"job", func(s *jobs.Spec) { s.Job, s.Env = "f", map[string]string{"A": "x"} }},
		{"job", func(s *jobs.Spec) { s.Job, s.Input = "f", []byte("x") }},
	})
}

func TestValidateNamesInvalidOption(t *testing.T) {
	most, least := math.MaxInt32, math.MinInt32 // variables, because on a 32-bit system a constant most+1 would not compile
	checkInvalid(t, []invalidSpec{
		{"retry_on", func(s *jobs.Spec) { s.MaxAttempts, s.RetryOn = 2, command.Codes("1"+strings.Repeat(",1", MaxCodes/2)) }},
		{"unique_mode", func(s *jobs.Spec) { s.Unique.Replace = true }},
		{"unique_mode", func(s *jobs.Spec) { s.Unique.UntilStart = true }},
		{"unique_for", func(s *jobs.Spec) { s.Unique.For = 1 }},
		{"unique_states", func(s *jobs.Spec) { s.Unique.States = []jobs.State{jobs.Failed} }},
		{"unique_key", func(s *jobs.Spec) { s.UniqueKey, s.Unique.Args = strings.Repeat("x", MaxText), true }},
		{"after", func(s *jobs.Spec) { s.DependsOn = make([]int64, MaxAfter+1) }},
		{"after_any", func(s *jobs.Spec) { s.DependsOnAnyEarlier = make([]int, MaxAfter+1) }},
		{"nice", func(s *jobs.Spec) { s.Resources.Nice = 20 }},
		{"ionice", func(s *jobs.Spec) { s.Resources.IONice = "x" }},
		{"memory", func(s *jobs.Spec) { s.Resources.Memory = 1 }},
		{"on_failure", func(s *jobs.Spec) { s.Hooks.OnFailure = "\x00" }},
		{"timeout", func(s *jobs.Spec) { s.Timeout = -1 }},
		{"timeout", func(s *jobs.Spec) { s.Timeout = MaxDelay + 1 }},
		{"kill_after", func(s *jobs.Spec) { s.KillAfter = -1 }},
		{"backoff_delay", func(s *jobs.Spec) { s.Backoff.Delay = -1 }},
		{"backoff_max", func(s *jobs.Spec) { s.Backoff.Max = math.MaxInt64 }},
		{"backoff", func(s *jobs.Spec) { s.Backoff.Strategy = "quadratic" }},
		{"backoff", func(s *jobs.Spec) { s.Backoff.Strategy = "" }},
		{"priority", func(s *jobs.Spec) { s.Priority = most + 1 }},
		{"priority", func(s *jobs.Spec) { s.Priority = least - 1 }},
		{"max_attempts", func(s *jobs.Spec) { s.MaxAttempts = -1 }},
		{"max_attempts", func(s *jobs.Spec) { s.MaxAttempts = most + 1 }},
		{"max_losses", func(s *jobs.Spec) { s.MaxLosses = -1 }},
		{"max_losses", func(s *jobs.Spec) { s.MaxLosses = most + 1 }},
		{"output_limit", func(s *jobs.Spec) { s.OutputLimit = -1 }},
		{"retry_on", func(s *jobs.Spec) { s.MaxAttempts, s.RetryOn = 2, "0" }},
		{"retry_on", func(s *jobs.Spec) { s.RetryOn = "75" }}, // invalid because a command by default has one attempt, so no retry
		{"path", func(s *jobs.Spec) { s.Path = "bin/true" }},
		{"path", func(s *jobs.Spec) { s.Path = "/" + strings.Repeat("x", MaxPath) }},
		{"cwd", func(s *jobs.Spec) { s.Cwd = "." }},
		{"cwd", func(s *jobs.Spec) { s.Cwd = "/a\x00" }},
		{"env_file", func(s *jobs.Spec) { s.EnvFile = "x" }},
		{"env_file", func(s *jobs.Spec) { s.EnvFile = "/\xff" }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{"": "x"} }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{"a=b": "x"} }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{".a": "x"} }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{strings.Repeat("a", MaxName+1): "x"} }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{"a": "\x00"} }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{"a": "\xff"} }},
		{"metadata", func(s *jobs.Spec) { s.Metadata = map[string]string{"a": strings.Repeat("x", MaxMetadata)} }},
		{"metadata", func(s *jobs.Spec) {
			s.Metadata = map[string]string{}
			for i := range MaxMetadataKeys + 1 {
				s.Metadata[fmt.Sprint("key", i)] = ""
			}
		}},
		{"env", func(s *jobs.Spec) { s.Env = map[string]string{"": "x"} }},
		{"env", func(s *jobs.Spec) { s.Env = map[string]string{"A=B": "x"} }},
		{"env", func(s *jobs.Spec) { s.Env = map[string]string{"A": "\x00"} }},
		{"env", func(s *jobs.Spec) { s.Env = map[string]string{"A": "\xff"} }},
		{"env", func(s *jobs.Spec) { s.Env = map[string]string{"A": strings.Repeat("x", MaxEnv)} }},
		// This character takes six bytes in JSON, so the text as JSON is too
		// long.
		{"env", func(s *jobs.Spec) { s.Env = map[string]string{"A": strings.Repeat("\x01", MaxEnv/4)} }},
		{"input", func(s *jobs.Spec) { s.Input = make([]byte, MaxInput+1) }},
	})
}

func TestValidateAcceptsValuesAtLimits(t *testing.T) {
	deep := json.RawMessage(strings.Repeat(`[{"a":`, usercode.MaxDepth/2) + `"[[["` + strings.Repeat("}]", usercode.MaxDepth/2))
	for name, set := range map[string]func(*jobs.Spec){
		"args":      func(s *jobs.Spec) { s.Job, s.Args = "f", json.RawMessage(`"`+strings.Repeat("x", MaxArgs-2)+`"`) },
		"deep args": func(s *jobs.Spec) { s.Job, s.Args = "f", deep },
		"wide args": func(s *jobs.Spec) {
			s.Job, s.Args = "f", json.RawMessage("["+strings.Repeat("[],", 2*usercode.MaxDepth)+`"\"[[[" ]`)
		},
		"no args": func(s *jobs.Spec) { s.Job, s.Args = "f", nil },
		"label":   func(s *jobs.Spec) { s.Label = strings.Repeat("é", MaxText/2) },
		"job":     func(s *jobs.Spec) { s.Job = "a:b/c.d-e_" + strings.Repeat("z", MaxName-10) },
		"queue":   func(s *jobs.Spec) { s.Queue = strings.Repeat("9", MaxName) },
		"input":   func(s *jobs.Spec) { s.Input = make([]byte, MaxInput) },
		"metadata": func(s *jobs.Spec) {
			s.Metadata = map[string]string{}
			for i := range MaxMetadataKeys - 1 {
				s.Metadata[fmt.Sprint("k._:/-", i)] = ""
			}
			s.Metadata["text"] = ""
			object, _ := usercode.Marshal(s.Metadata)
			s.Metadata["text"] = strings.Repeat("&", MaxMetadata-len(object))
		},
		"env":        func(s *jobs.Spec) { s.Env = map[string]string{"A": strings.Repeat("&", MaxEnv-len(`{"A":""}`))} },
		"path":       func(s *jobs.Spec) { s.Path = "/" + strings.Repeat("x", MaxPath-1) },
		"run_at":     func(s *jobs.Spec) { s.RunAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) },
		"the past":   func(s *jobs.Spec) { s.RunAt = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC) },
		"priority":   func(s *jobs.Spec) { s.Priority = math.MaxInt32 },
		"surrogates": func(s *jobs.Spec) { s.Args = json.RawMessage(`["\ud83d\ude00"]`) },
	} {
		s := commandTask("true")
		set(&s)
		if err := Validate(&s); err != nil {
			t.Errorf("%s: got error %.200v, want none", name, err)
		}
	}
}

func TestArgvKeepsAllTextsExceptNUL(t *testing.T) {
	s := commandTask("echo", "a\x00b")
	if got := invalidField(t, Validate(&s)); got != "args" || !strings.Contains(s.Err.Error(), "argument 2") {
		t.Errorf(`got field %q and error %v, want field "args" and an error with "argument 2"`, got, s.Err)
	}
	words := []string{"printf", "", "\xff", "caf\xe9", " ", "<&>", "\u2028", "\n\t\x1b[31m", `"\`, "–é😀", "-", "--", "\ufffd"}
	s = commandTask(words...)
	if err := Validate(&s); err != nil {
		t.Errorf("%q: got error %v, want none", words, err)
	}
	argv, err := Argv(s.Args)
	if err != nil || strings.Join(argv, "\x00") != strings.Join(words, "\x00") {
		t.Errorf("got arguments %q and error %v, want %q", argv, err, words)
	}
	if strings.Contains(string(s.Args), `\u0026`) {
		t.Errorf("got args %s, want & without an HTML escape", s.Args)
	}
}

func TestCommandJobIsReserved(t *testing.T) {
	s := jobs.Define[[]string](command.Job).With([]string{"true"})
	testkit.Equal(t, "invalid field", invalidField(t, Validate(&s)), "job")
}

func TestValidateReturnsErrorOfSpec(t *testing.T) {
	want := errors.New("line 17")
	if err := Validate((&jobs.Spec{Err: want})); err != want {
		t.Errorf("got error %v, want %v", err, want)
	}
	testkit.ErrorIs(t, Validate((&jobs.Spec{})), jobs.ErrInvalid)
	s := jobs.Define[chan int]("f").With(nil)
	testkit.Equal(t, "invalid field", invalidField(t, Validate(&s)), "args")
}
