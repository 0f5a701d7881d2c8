package web

import (
	"strings"
	"testing"
	"time"
)

func TestSamplesHaveTheFormatOfPrometheus(t *testing.T) {
	f := &family{name: "m"}
	f.add(1.5e9)
	f.add(0, "a", "back\\slash \"quoted\"\nline \xff", "b", "")
	if got, want := string(f.samples), "m 1.5e+09\nm{a=\"back\\\\slash \\\"quoted\\\"\\nline \ufffd\",b=\"\"} 0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g := &histogram{}
	g.add(time.Millisecond)
	g.add(3 * time.Hour)
	f = &family{name: "h"}
	g.addTo(f, "q", "x")
	lines := strings.Split(string(f.samples), "\n")
	for i, want := range map[int]string{
		0: `h_bucket{q="x",le="0.005"} 1`, 15: `h_bucket{q="x",le="7200"} 1`, 16: `h_bucket{q="x",le="+Inf"} 2`,
		17: `h_sum{q="x"} 10800.001`, 18: `h_count{q="x"} 2`,
	} {
		if lines[i] != want {
			t.Errorf("line %d: got %s, want %s", i, lines[i], want)
		}
	}
}
