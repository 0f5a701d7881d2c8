package test

import (
	"regexp"
	"strings"
	"testing"
)

// TestTheExampleOfAnOptionIsTheCode checks that the files have the lines of the diff in CONTRIBUTING.md, and not those that the diff
// removes. An ellipsis stands for any text.
func TestTheExampleOfAnOptionIsTheCode(t *testing.T) {
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

// spaces matches space between words. gofmt may align words in another way.
var spaces = regexp.MustCompile(`[ \t]+`)
