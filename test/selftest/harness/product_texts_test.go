package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTextsOfProduct checks that the source of runner has every text that the
// harness recognises.
func TestTextsOfProduct(t *testing.T) {
	missing := map[string]bool{`Info("` + readyText + `"`: true, busyText: true, noServerText: true,
		lostCommitText: true, noGuardianText: true,
		guardiansText: true, abandonedText: true, lostText: true}
	err := filepath.WalkDir("../../..", func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "test" || entry.Name() == ".git"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for text := range missing {
			if strings.Contains(string(source), text) {
				delete(missing, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for text := range missing {
		t.Errorf("got no source file with %s, want one: the harness recognises this text", strconv.Quote(text))
	}
}
