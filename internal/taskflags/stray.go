package taskflags

import (
	"slices"
	"strings"
)

// StrayOption looks for an option of runner among the words of a user's command, and returns the first one or an empty string. If the
// command has such an option, the user probably meant it for runner, because few other programs have an option with that name.
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
