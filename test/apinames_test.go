package test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// apiName matches a qualified name of the library. r is a Runner.
	apiName = regexp.MustCompile(`(?:^|[^\w/.])(r|runner|jobs|admin|command|commands|runnertest|postgres|web)\.([A-Z]\w+)`)
	// listedName matches the name of a line in testdata/api.txt.
	listedName = regexp.MustCompile(`^(?:const|var|type|func) (\(\*Runner\) )?(\w+)`)
)

// TestDocsNameCallsThatExist checks names such as runner.Open, and names of
// methods such as r.Enqueue, in pages and in comments of public packages.
func TestDocsNameCallsThatExist(t *testing.T) {
	exists, pkg := map[string]bool{}, ""
	for line := range strings.Lines(readFile(t, goldenAPI)) {
		if rest, ok := strings.CutPrefix(line, "package "); ok {
			path, _, _ := strings.Cut(rest, ":")
			pkg = path[strings.LastIndex(path, "/")+1:]
		} else if match := listedName.FindStringSubmatch(line); match != nil {
			of := pkg
			if match[1] != "" {
				of = "r"
			}
			exists[of+"."+match[2]] = true
		}
	}

	files := append(globbed(t, "docs/*.md"), globbed(t, "examples/*/README.md")...)
	for _, p := range public {
		files = append(files, globbed(t, p.path+"/*.go")...)
	}
	found := 0
	for _, path := range append(files, "README.md") {
		for line := range strings.Lines(readFile(t, path)) {
			if filepath.Ext(path) == ".go" {
				_, line, _ = strings.Cut(line, "//")
			}
			for _, match := range apiName.FindAllStringSubmatch(line, -1) {
				found++
				if name := match[1] + "." + match[2]; !exists[name] {
					t.Errorf("%s: got the name %s, want one of %s", path, name, goldenAPI)
				}
			}
		}
	}
	if found < 300 {
		t.Errorf("got %d names in pages and comments, want at least 300", found)
	}
}
