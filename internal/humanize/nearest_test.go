package humanize

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"enqueue", "list", "logs", "status", "--db", "--json", "--lane", "--name", "--max-attempts", "--env", "--retry-on"}
	for word, want := range map[string]string{
		"enqeue": "enqueue", "enqueeu": "enqueue", "enuqeeu": "enqueue", "staus": "status", "lsit": "list", "lits": "list",
		"ilst": "list", "lis": "list", "ogs": "logs", "--dbb": "--db", "log": "logs",
		"--maxattempts": "--max-attempts", "--max_attempts": "--max-attempts", "--max-atempt": "--max-attempts", "--jsno": "--json",
		"--envv": "--env", "--bd": "", "--once": "", "--delay": "", "--mane": "", "--drain": "", "--retries": "", "--every": "", "ps": "",
		"start": "", "startup": "", "": "", "-": "", "exec": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%.20q): got %q; want %q", word, got, want)
		}
	}
}
