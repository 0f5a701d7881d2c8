package humanize

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles the regular expression at its first
// call, and panics if it's invalid. In a variable of a package, every start of
// the program would wait for it: 0.02 ms for each expression, and most commands
// use none.
func Lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
