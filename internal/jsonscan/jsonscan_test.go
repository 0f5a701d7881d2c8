package jsonscan

import (
	"encoding/json"
	"reflect"
	"testing"
)

func FuzzMembers(f *testing.F) {
	for _, text := range []string{`{}`, ` { "a" : 1 , "b":[1,{"c":"]}\""}], "\u0061\n": "x\\" } `, `{"a":null,"é":-1.5e3,"":{}}`,
		"{\"a\":\"\xff\"}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		got := map[string]json.RawMessage{}
		for key, value := range Members(text) {
			name, err := Unquote(append(append([]byte{'"'}, quoted(t, key)...), '"'))
			if err != nil {
				t.Fatalf("%q: key %q: got error %v, want none", text, key, err)
			}
			got[name] = value
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}

// quoted encodes a key as a JSON string and returns it without the quotes.
func quoted(t *testing.T, key []byte) []byte {
	text, err := json.Marshal(string(key))
	if err != nil {
		t.Fatal(err)
	}
	return text[1 : len(text)-1]
}
