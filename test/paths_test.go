package test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var namedFile = regexp.MustCompile(`\b(cmd_[a-z_]+|(db|jobs|runner|internal|web|test|bench|examples)/[a-z0-9_/]+)\.go\b`)

// TestNamedFilesExist checks that all source files exist that the docs name.
func TestNamedFilesExist(t *testing.T) {
	for _, page := range append(globbed(t, "*.md"), globbed(t, "docs/*.md")...) {
		if page == "CHANGELOG.md" { // an entry in the changelog may name a file that was deleted later
			continue
		}
		for i, line := range strings.Split(readFile(t, page), "\n") {
			for _, name := range namedFile.FindAllString(line, -1) {
				if _, err := os.Stat(name); err != nil && name != "cmd_x.go" {
					t.Errorf("%s:%d: got the file name %s (%v), want an existing file", page, i+1, name, err)
				}
			}
		}
	}
}
