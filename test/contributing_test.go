package test

import (
	"regexp"
	"strings"
	"testing"
)

// TestExampleOfOptionIsCode compares the diff in CONTRIBUTING.md with the
// source. The files must contain the lines that the diff adds or leaves as they
// are, and must not contain the lines that it removes. An ellipsis in the diff
// stands for any text.
func TestExampleOfOptionIsCode(t *testing.T) {
	_, diff, found := strings.Cut(readFile(t, "CONTRIBUTING.md"), "```diff\n")
	diff, _, closed := strings.Cut(diff, "```\n")
	if !found || !closed {
		t.Fatal("CONTRIBUTING.md: got no diff, want one")
	}
	var file, text string
	lines := 0
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "--- "); ok {
			file = strings.TrimSpace(name)
			text = spaces.ReplaceAllString(readFile(t, file), " ")
			continue
		}
		words := regexp.QuoteMeta(strings.TrimSpace(spaces.ReplaceAllString(line[1:], " ")))
		has := regexp.MustCompile(strings.ReplaceAll(words, "…", ".*")).MatchString(text)
		if want := line[0] != '-'; has != want {
			t.Errorf("CONTRIBUTING.md: got a line in %s: %t, want %t: %s", file, has, want, line)
		}
		lines++
	}
	if lines < 10 {
		t.Errorf("got %d lines of the diff, want at least 10", lines)
	}
}

// spaces matches white space in a line. The test replaces it by one space,
// because gofmt may align the source differently.
var spaces = regexp.MustCompile(`[ \t]+`)
