package taskspec

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// TestArgvKeepsEveryByte encodes and decodes the words of a command. Words with
// any bytes except NUL must stay the same. The JSON must be valid and in UTF-8.
func TestArgvKeepsEveryByte(t *testing.T) {
	var all strings.Builder
	for b := 1; b < 256; b++ {
		all.WriteByte(byte(b))
	}
	for _, argv := range [][]string{{"echo"}, {"echo", all.String()}, {"\xff", "", "a\nb", "é", "\xed\xb3\xbf"}, {"echo",
		`{"base64":"YQ=="}`}} {
		spec := jobs.Command(command.Command{Argv: argv})
		got, err := Argv(spec.Args)
		if err = cmp.Or(spec.Err, err); err != nil || !slices.Equal(got, argv) {
			t.Errorf("stored as %s: got %q (%v), want %q", spec.Args, got, err, argv)
		}
	}
}

// TestArgvRejects checks that Argv rejects JSON that does not contain the words
// of a command.
func TestArgvRejects(t *testing.T) {
	for _, args := range []string{`{}`, `[]`, `["a",null]`, `["a",1]`, `[""]`, `["a\u0000"]`, `["a",{"base64":"AA=="}]`,
		`["a",{"base64":"?"}]`,
		`["a",{"base64":"YQ==","x":1}]`, `["a",[]]`} {
		if got, err := Argv(json.RawMessage(args)); err == nil {
			t.Errorf("%s: got %q, want an error", args, got)
		}
	}
}

func TestValidResult(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, ok := range map[string]bool{
		`1`: true, `null`: true, " {} \n": true, nested(usercode.MaxDepth): true,
		`"` + strings.Repeat("x", usercode.MaxResult-2) + `"`: true,
		``: false, `{`: false, "\"\xff\"": false, nested(usercode.MaxDepth + 1): false,
		`"` + strings.Repeat("x", usercode.MaxResult-1) + `"`: false,
		"1\x00": false,
	} {
		if err := usercode.ValidResult([]byte(text)); (err == nil) != ok {
			t.Errorf("%.20q: got error %v, want an error: %v", text, err, !ok)
		}
	}
}
