package jobs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestArgvKeepsEveryByte checks that an argv with any bytes except NUL is stored and read unchanged, as valid JSON in UTF-8.
func TestArgvKeepsEveryByte(t *testing.T) {
	var all strings.Builder
	for b := 1; b < 256; b++ {
		all.WriteByte(byte(b))
	}
	for _, argv := range [][]string{{"echo"}, {"echo", all.String()}, {"\xff", "", "a\nb", "é", "\xed\xb3\xbf"}, {"echo",
		`{"base64":"YQ=="}`}} {
		s := Command{Argv: argv}.With()
		if s.Err != nil {
			t.Fatalf("%q: got the error %v, want none", argv, s.Err)
		}
		got, err := Argv(s.Args)
		if err != nil || !slices.Equal(got, argv) {
			t.Errorf("stored as %s: got %q (%v), want %q", s.Args, got, err, argv)
		}
	}
}

// TestArgvRejects checks that Argv rejects JSON that is no argv.
func TestArgvRejects(t *testing.T) {
	for _, args := range []string{`{}`, `[]`, `["a",null]`, `["a",1]`, `[""]`, `["a\u0000"]`, `["a",{"base64":"AA=="}]`,
		`["a",{"base64":"?"}]`,
		`["a",{"base64":"YQ==","x":1}]`, `["a",[]]`} {
		if got, err := Argv(json.RawMessage(args)); err == nil {
			t.Errorf("%s: got %q, want an error", args, got)
		}
	}
	if s := (Command{Argv: []string{"a\x00"}}).With(); s.Err == nil {
		t.Errorf("argument with NUL: got args %s, want an error", s.Args)
	}
}
