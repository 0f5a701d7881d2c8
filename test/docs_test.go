//go:build unix

package test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"example.com/runner/test/codeblock"
)

const (
	testCommand = "go test ./...\n" // the test skips this block of the README, which would run the test itself again
	mark        = "\n@@@ end of block\n"
)

// TestDocs checks the code blocks of README.md, CONTRIBUTING.md and the pages
// in docs. The first word after the fence is the type of the block and says how
// the test checks the block:
//
//	sh:      Part of a shell script, which has all sh blocks of the page in order. It runs as a new user would type it: in a new
//	         checkout, with an empty HOME, on an 80-column terminal, with bin in PATH.
//	output:  Output of the block above. … matches any text on a line. A time or a duration matches any other.
//	sql:     Query that finds at least one row in the database of its page.
//	go:      Program that compiles in another module. If it begins with a comment like "// main.go", it is that file of ~/app,
//	         which the sh blocks of the page build.
//	shell, python, js:  Code that needs other programs. A script in testdata/script runs it with the script command "block".
//	text:    Picture.
//	diff:    Example of a change.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages := globbed(t, "docs/*.md")
	var scripts string
	for _, name := range globbed(t, "testdata/script/*.txtar") {
		scripts += readFile(t, name)
	}
	checkout, programs := copiedCheckout(t), map[string]string{}
	environ := append(shellEnviron(t, checkout), "GOFLAGS=-buildvcs=false")
	for _, page := range append([]string{"README.md", "CONTRIBUTING.md"}, pages...) { // README.md first: it builds bin/runner
		list, err := codeblock.Read(page)
		if err != nil {
			t.Fatal(err)
		}
		home := t.TempDir()
		database := filepath.Join(home, ".local/state/runner/runner.db")
		if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			if name := b.File(); name != "" {
				writeFile(t, filepath.Join(home, "app", name), b.Text)
			}
		}
		runShell(t, page, list, checkout, append(environ, "HOME="+home, "RUNNER_DB="+database))
		for _, b := range list {
			switch b.Lang {
			case "sh", "output", "text", "diff":
			case "shell", "python", "js":
				if !strings.Contains(scripts, fmt.Sprintf("block %s %s ", page, b.Lang)) {
					t.Errorf("%s: got no script in testdata/script that runs the block, want one", b.At)
				}
			case "go":
				if b.File() == "" {
					programs[strings.NewReplacer("/", "_", ".", "_", ":", "_").Replace(b.At)+"/main.go"] = b.Text
				} else if !slices.ContainsFunc(list, func(sh codeblock.Block) bool {
					return sh.Lang == "sh" && strings.Contains(sh.Text, "go vet . && go test .")
				}) {
					t.Errorf("%s: got no sh block that builds the file, want one", b.At)
				}
			case "sql":
				runQuery(t, b, database)
			default:
				t.Errorf("%s: got a block of the unknown type %q, want one of the types of TestDocs", b.At, b.Lang)
			}
		}
	}
	vetPrograms(t, programs)
}

// copiedCheckout returns a copy of the checkout, which commands in the docs
// may change. Only inCheckout compiles, because the build cache doesn't know
// the copy.
func copiedCheckout(t *testing.T) string {
	dir := t.TempDir()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && name != "bin" {
			// Copy the files, because go:embed does not follow links.
			if err := exec.Command("cp", "-R", name, filepath.Join(dir, name)).Run(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func shellEnviron(t *testing.T, checkout string) []string {
	environ := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "RUNNER_") })
	// the defaults of these variables depend on HOME, which TestDocs changes
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOENV"} {
		environ = append(environ, name+"="+strings.TrimSpace(goOutput(t, "env", name)))
	}
	return append(environ, "USER=ann", "RUNNER_FORCE_TTY=80", "NO_COLOR=1", "LC_ALL=C.UTF-8",
		"PATH="+filepath.Join(checkout, "bin")+":"+os.Getenv("PATH"))
}

// runShell runs the sh blocks of a page, and compares their output with the
// blocks that show it.
func runShell(t *testing.T, page string, list []codeblock.Block, checkout string, environ []string) {
	script := "set -eu\nexec 2>&1\n"
	var ran []codeblock.Block
	for _, b := range list {
		if b.Lang == "sh" && b.Text != testCommand {
			script += b.Text + "test $? = 0\nprintf '" + strings.ReplaceAll(mark, "\n", `\n`) + "'\n"
			ran = append(ran, b)
		}
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", inCheckout(t).Replace(script))
	shell.Dir, shell.Env = checkout, environ
	out, err := shell.CombinedOutput()
	printed := strings.Split(string(out), mark)
	if err != nil {
		t.Fatalf("%s: got error %v, want none; output before it:\n%s", page, err, printed[len(printed)-1])
	}
	for i, b := range list {
		if b.Lang != "output" {
			continue
		}
		above := slices.Index(ran, list[i-1])
		if above < 0 {
			t.Errorf("%s: got no sh block above the output, want one", b.At)
		} else if got := printed[above]; !looksLike(got, b.Text) {
			t.Errorf("%s: got from the block above\n%s\nwant\n%s", b.At, got, b.Text)
		}
	}
}

// inCheckout lets commands compile this checkout in place of its copy.
func inCheckout(t *testing.T) *strings.Replacer {
	here := absolute(t, ".")
	return strings.NewReplacer("go build -o bin/runner .", "go build -C '"+here+"' -o $PWD/bin/runner .",
		"runner=$PWD", "runner='"+here+"'")
}

var loose = regexp.MustCompile(`…|\d\d:\d\d:\d\d|\b\d+(\\\.\d+)?(ms|s|m|h)\b`)

// looksLike compares two texts word by word in each line. The number of spaces
// between words does not count, because it depends on the widths of columns.
func looksLike(got, want string) bool {
	words := func(text string) string {
		var lines []string
		for line := range strings.Lines(strings.TrimSpace(text)) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return strings.Join(lines, "\n")
	}
	pattern := loose.ReplaceAllStringFunc(regexp.QuoteMeta(words(want)), func(s string) string {
		switch {
		case s == "…":
			return `.*`
		case strings.Contains(s, ":"):
			return `\d\d:\d\d:\d\d`
		default:
			return `\d+(\.\d+)?(ms|s|m|h)`
		}
	})
	return regexp.MustCompile("^" + pattern + "$").MatchString(words(got))
}

// vetPrograms compiles Go files in a module of their own, which requires this
// module, as a reader would. The keys are paths in that module.
func vetPrograms(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.sum"), readFile(t, "go.sum"))
	writeFile(t, filepath.Join(dir, "go.mod"), strings.Replace(readFile(t, "go.mod"), "module "+module+"\n", "module example.com/app\n", 1)+
		fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, absolute(t, ".")))
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	vet := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
	vet.Dir = dir
	vet.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("go vet: got error %v, want none\n%s", err, out)
	}
	if out, err := exec.Command("gofmt", "-l", dir).Output(); err == nil && len(out) > 0 {
		t.Errorf("got another format than that of gofmt:\n%s", out)
	}
}

func runQuery(t *testing.T, b codeblock.Block, database string) {
	pool, err := sql.Open("sqlite", "file:"+database+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rows, err := pool.QueryContext(t.Context(), b.Text)
	if err != nil {
		t.Errorf("%s: got error %v, want none", b.At, err)
		return
	}
	defer rows.Close()
	if !rows.Next() {
		t.Errorf("%s: got no row (%v), want at least one", b.At, rows.Err())
	}
}
