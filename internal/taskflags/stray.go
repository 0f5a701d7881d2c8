package taskflags

import (
	"slices"
	"strings"
)

// StrayOption returns the first word of a user's command that is an option of runner. It returns an empty string if there is none. The
// user probably meant the option for runner, because few other programs have an option of that name.
func StrayOption(words []string) string {
	if i := slices.IndexFunc(words, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.Contains([]string{"--wait", "--wait-timeout", "--queue", "--priority", "--at-most-once", "--max-attempts",
			"--max-losses", "--retry-on", "--unique", "--expires-in", "--kill-after", "--after", "--after-any", "--lane"}, name)
	}); i > 0 {
		name, _, _ := strings.Cut(words[i], "=")
		return name
	}
	return ""
}
