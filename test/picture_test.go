package test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/runner/test/picture"
)

const pictureFile = "docs/pictures/packages.svg"

// ofTheProgram returns the packages of the program. The value of a package is
// the list of the packages of this module that it imports.
func ofTheProgram(t *testing.T) map[string][]string {
	t.Setenv("GOOS", "linux") // always use Linux, because the imports depend on the operating system
	imports := map[string][]string{}
	decoder := json.NewDecoder(strings.NewReader(goOutput(t, "list", "-deps", "-json=ImportPath,Dir,Imports", ".")))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return imports
		} else if err != nil {
			t.Fatal(err)
		}
		if !inModule(p.ImportPath) {
			continue
		}
		for _, name := range globbed(t, filepath.Join(p.Dir, "*.go")) {
			// Stat makes go test notice a later change of the file. Then go
			// test runs this test again, and uses no cached result.
			if _, err := os.Stat(name); err != nil {
				t.Error(err)
			}
		}
		ours := slices.DeleteFunc(p.Imports, func(path string) bool { return !inModule(path) })
		for i := range ours {
			ours[i] = pictureName(ours[i])
		}
		imports[pictureName(p.ImportPath)] = ours
	}
}

func inModule(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func pictureName(path string) string {
	if path == module {
		return "main"
	}
	return local(path)
}

// TestPictureOfPackagesIsUpToDate compares the picture at the beginning of
// docs/design.md with the packages. UPDATE_DOCS=1 go test -run TestPicture
// ./test writes the picture.
func TestPictureOfPackagesIsUpToDate(t *testing.T) {
	want := picture.SVG(ofTheProgram(t), func(name string) string {
		switch {
		case name == "main":
			return "program"
		case strings.Contains("/"+name, "/internal/"):
			return "internal"
		}
		return "public"
	})
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(pictureFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(pictureFile); string(got) != want {
		t.Errorf("%s: got another picture (%v) than go list gives; to write it: make docs", pictureFile, err)
	}
}

// TestDesignDescribesEachPackage checks that the table of packages in
// docs/design.md has a row for each package.
func TestDesignDescribesEachPackage(t *testing.T) {
	text := readFile(t, "docs/design.md")
	imports := ofTheProgram(t)
	for name := range imports {
		if !strings.Contains(text, "\n| **"+name+"** | ") {
			t.Errorf("docs/design.md: got no row of package %s, want one", name)
		}
	}
	for line := range strings.Lines(text) {
		name, isRow := strings.CutPrefix(line, "| **")
		name, _, _ = strings.Cut(name, "**")
		if _, known := imports[name]; isRow && !known {
			t.Errorf("docs/design.md: got a row of package %s, want only packages of the program", name)
		}
	}
}
