package db

import (
	"testing"

	"example.com/runner/test/testkit"
)

func TestValuesOfArrayAreQuoted(t *testing.T) {
	got := arraysOf([]any{"plain", int64(-5), nil, `{"a": "\\", null}`, int64(7), "null"}, 3)
	want := []string{`{"plain","{\"a\": \"\\\\\", null}"}`, `{-5,7}`, `{NULL,"null"}`}
	for i, text := range want {
		testkit.Equal(t, "array", got[i].(string), text)
	}
}
