package test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestBehavioursHaveTests checks the tables of docs/behaviours.md. Each row has
// a verdict, and a comment with the names of the tests that show it. The text
// above the tables counts the verdicts.
func TestBehavioursHaveTests(t *testing.T) {
	const page = "docs/behaviours.md"
	text, tests, verdicts, rows := readFile(t, page), namedTests(t), map[string]int{}, 0
	row := regexp.MustCompile(`^\| (\d+) \| [^|]+ \| [^|]+ \| (same|better|differs|missing)(: [^|<]+)?(?: <!-- (.+) -->)? \|$`)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| #") {
			continue
		}
		rows++
		cells := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if cells == nil || cells[1] != strconv.Itoa(rows) {
			t.Errorf("%s: got the row %q, want one with the number %d, a known verdict and the names of tests", page, line, rows)
			continue
		}
		verdict, reason := cells[2], cells[3]
		verdicts[verdict]++
		if reason == "" && verdict != "same" {
			t.Errorf("%s: row %d: got %s without a reason, want one", page, rows, verdict)
		}
		if cells[4] == "" && verdict != "missing" {
			t.Errorf("%s: row %d: got no test, want one", page, rows)
		}
		for name := range strings.SplitSeq(cells[4], "; ") {
			if name != "" && !tests[name] {
				t.Errorf("%s: row %d: got the test name %s, want an existing test", page, rows, name)
			}
		}
	}
	want := fmt.Sprintf("Of %d behaviours, the same: %d, better: %d, different: %d, missing: %d.", rows, verdicts["same"],
		verdicts["better"], verdicts["differs"], verdicts["missing"])
	if rows != 96 || !strings.Contains(text, want) {
		t.Errorf("%s: got no sentence %q with 96 behaviours, want it", page, want)
	}
}
