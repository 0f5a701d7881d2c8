package humanize

import (
	"regexp"
	"sync"
)

// Lazy returns a function that returns the compiled regular expression. The function compiles it at its first call, and panics if the text
// is invalid. A variable of a package should not hold a compiled expression: every start of the program would wait for the compilation,
// 0.02 ms for each expression, and most commands use none.
func Lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
