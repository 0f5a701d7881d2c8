package humanize

import "testing"

func TestLastTextIsPlainAndBounded(t *testing.T) {
	for _, c := range []struct {
		output, want string
		limit        int
	}{
		{"", "", 200},
		{"\n \r\n", "", 200},
		{"one\ntwo\n", "two", 200},
		{"one\ntwo", "two", 200},
		{"error: \x1b[31mdisk full\x1b[0m\n\x1b[0m\n", "error: disk full", 200},
		{"10%\r50%\rno space left on device\r\n", "no space left on device", 200},
		{"a\tb\x00c\xff\n", "a bc\ufffd", 200},
		{"\x1b]0;title\adone", "done", 200},
		{"äöüäöü", "äö…", 8},
		{"12345678", "12345678", 8},
	} {
		if got := LastText([]byte(c.output), c.limit); got != c.want {
			t.Errorf("%q: got %q, want %q", c.output, got, c.want)
		}
	}
}
