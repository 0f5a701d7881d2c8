package ui

import (
	"strings"
	"testing"
)

func TestShieldKeepsColoursAndLines(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\r\n":                               "a\tb\r\n",
		"\x1b[1;31mred\x1b[0m\x1b[K é€😀":         "\x1b[1;31mred\x1b[0m\x1b[K é€😀",
		"\x1b[38:2::1:2:3mx":                     "\x1b[38:2::1:2:3mx",
		"\x1b]52;c;aGk=\a":                       `\x1b]52;c;aGk=\x07`,
		"\x1b]0;title\x1b\\":                     `\x1b]0;title\x1b\`,
		"\x1b[2J\x1b[H\x1b[?25l":                 `\x1b[2J\x1b[H\x1b[?25l`,
		"\x1b\x1b[31mx":                          `\x1b` + "\x1b[31mx",
		"\u202e\u009b31m\ufeff":                  `\u202e\u009b31m\ufeff`,
		"\xff\xc3\x28\xe2\x82":                   `\xff\xc3(\xe2\x82`,
		"\x9b31m\x00\b":                          `\x9b31m\x00\x08`,
		"\x1b[":                                  `\x1b[`,
		"\x1b[" + strings.Repeat("1;", 40) + "m": `\x1b[` + strings.Repeat("1;", 40) + "m",
	} {
		for size := 1; size <= len(text); size++ { // pieces of any size give the same text
			var s Shield
			var got []byte
			for i := 0; i < len(text); i += size {
				got = append(got, s.Escape([]byte(text[i:min(i+size, len(text))]))...)
			}
			if got = append(got, s.End()...); string(got) != want {
				t.Errorf("%q in pieces of %d: got %q, want %q", text, size, got, want)
			}
		}
	}
}
