package web_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/runner/test/testkit"
)

// otherHost matches a URL on another host. The test ignores names of XML
// namespaces, because browsers do not request them.
var otherHost = regexp.MustCompile(`(?:https?:)?//[a-z0-9-]+\.[a-z]`)

func TestEmbeddedFilesAreSmallAndComplete(t *testing.T) {
	all, script := 0, 0
	for _, dir := range []string{"static", "templates"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all += len(text)
			if strings.HasSuffix(path, ".js") {
				script += len(text)
			}
			for _, found := range otherHost.FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), -1) {
				t.Errorf("%s: got the URL %s of another host, want none", path, found)
			}
			if strings.HasSuffix(path, ".html") && regexp.MustCompile(`(?i)\son[a-z]+=|\sstyle=|<script>|<style`).Match(text) {
				t.Errorf("%s: got an inline script or style, want none: the policy forbids them", path)
			}
			return nil
		})
		testkit.NoError(t, err)
	}
	const maxAll, maxScript = 80, 20 // kB
	if all > maxAll*1000 || script > maxScript*1000 {
		t.Errorf("got %d embedded bytes, %d of them scripts; want at most %d kB and %d kB", all, script, maxAll, maxScript)
	}
	page, err := os.ReadFile("../docs/dashboard.md")
	testkit.NoError(t, err)
	testkit.Contains(t, string(page), fmt.Sprintf("less than %d kB, of which less than %d kB are scripts", maxAll, maxScript))
	t.Logf("%d bytes are embedded, %d of them scripts", all, script)
}
