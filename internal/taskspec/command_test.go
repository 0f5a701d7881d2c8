package taskspec

import (
	"encoding/json"
	"testing"
)

// FuzzPlainArgv checks that Argv accepts all JSON that isPlainArgv accepts.
func FuzzPlainArgv(f *testing.F) {
	for _, seed := range []string{`["true"]`, `["a", "" ,"c"]`, `[""]`, `[]`, `["a",["b"]]`, `["a",1]`, `["a",null]`, `["a"]]`,
		`["a\u0000"]`, `{"a":"b"}`, `["]","\\"]`, `["a" , "b"]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) || !isPlainArgv(text) {
			return
		}
		if argv, err := Argv(text); err != nil {
			t.Errorf("%q: got arguments %q and error %v, want no error", text, argv, err)
		}
	})
}

func TestPlainArgv(t *testing.T) {
	for text, want := range map[string]bool{`["true"]`: true, `["a","b c", ""]`: true, `["a"]`: true, `[""]`: false, `[]`: false,
		`["",""]`:     false,
		`["a",["b"]]`: false, `["a",1]`: false, `["a",{"b":"c"}]`: false, `["a\n"]`: false, `{"a":"b"}`: false, `"a"`: false} {
		if got := isPlainArgv([]byte(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
