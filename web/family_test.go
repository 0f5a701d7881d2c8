package web

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestSamplesHaveTheFormatOfPrometheus(t *testing.T) {
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
	g := &histogram{}
	g.add(time.Millisecond)
	g.add(3 * time.Hour)
	f = c.add(histogramKind, "h", "help")
	g.addTo(f, "q", "x")
	b.Reset()
	f.write(&b)
	lines := strings.Split(b.String(), "\n")[2:]
	for i, want := range map[int]string{
		0: `h_bucket{q="x",le="0.005"} 1`, 15: `h_bucket{q="x",le="7200"} 1`, 16: `h_bucket{q="x",le="+Inf"} 2`,
		17: `h_sum{q="x"} 10800.001`, 18: `h_count{q="x"} 2`,
	} {
		if lines[i] != want {
			t.Errorf("line %d: got %s, want %s", i, lines[i], want)
		}
	}
}
