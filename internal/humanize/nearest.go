package humanize

import (
	"strings"

	"github.com/xrash/smetrics"
)

// Nearest returns the candidate that the user probably meant by word, or an
// empty string. It ignores dashes and underscores.
func Nearest(word string, candidates []string) string {
	letters := strings.NewReplacer("-", "", "_", "")
	word = letters.Replace(word)
	nearest, best := "", 0.0
	for _, candidate := range candidates {
		name := letters.Replace(candidate)
		s := smetrics.JaroWinkler(word, name, 0.7, 4)
		if s > best && (s > 0.9 || oneLetterOff(word, name)) {
			nearest, best = candidate, s
		}
	}

	return nearest
}

// oneLetterOff reports whether two names differ by one letter, but not the
// first: many short names would be similar by chance.
func oneLetterOff(a, b string) bool {
	return min(len(a), len(b)) >= 3 && a[0] == b[0] && smetrics.WagnerFischer(a, b, 1, 1, 1) == 1
}
