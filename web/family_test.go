package web

import (
	"bytes"
	"testing"
)

func TestSamplesHaveFormatOfPrometheus(t *testing.T) {
	c := &collection{}
	f := c.gauge("m", "help")
	f.add(1.5e9)
	f.add(0, "a", "back\\slash \"quoted\"\nline \xff", "b", "")
	var b bytes.Buffer
	f.write(&b)
	want := "# HELP m help\n# TYPE m gauge\nm 1.5e+09\n" +
		"m{a=\"back\\\\slash \\\"quoted\\\"\\nline \ufffd\",b=\"\"} 0\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
