package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"enqueue", "list", "logs", "status", "--db", "--json", "--lane", "--name", "--max-attempts", "--env", "--retry-on"}
	for word, want := range map[string]string{
		"enqeue": "enqueue", "enqueeu": "enqueue", "enuqeeu": "enqueue", "staus": "status", "lsit": "list", "lits": "list",
		"ilst": "list", "lis": "list", "ogs": "", "--dbb": "--db", "log": "logs",
		"--maxattempts": "--max-attempts", "--max_attempts": "--max-attempts", "--max-atempt": "--max-attempts", "--jsno": "--json",
		"--envv": "--env", "--bd": "", "--once": "", "--delay": "", "--mane": "", "--drain": "", "--retries": "", "--every": "", "ps": "",
		"start": "", "startup": "", "": "", "-": "", "exec": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%.20q): got %q; want %q", word, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1},
		{"kitten", "sitting", 3}, {"abcd", "badc", 2}, {"ca", "abc", 3},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q): got %d; want %d", c.a, c.b, got, c.want)
		}
	}
}
