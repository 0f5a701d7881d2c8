package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// newerSource lists changes to the source, by file, that make a newer version of runner: another version number, and an option umask for
// commands. Each change is a pair: a text in the source, and the text to insert after it.
var newerSource = map[string][][2]string{
	"runner/runner.go": {{`const Version = "`, "9."}},
	"jobs/options.go":  {{"type Options struct {\n", "\tUmask int\n"}},
	"internal/taskspec/options.go": {{"var taskOptions = []OptionInfo{\n",
		`	{Key: "umask", Group: "Environment", Flag: "umask", Value: "N", Help: "mode bits", Commands: true,
		stored: func(o *jobs.Options) any { return &o.Umask }},
`}},
	"runner/internal/exec/command.go": {{`	path, err := c.path(argv[0])
	if err != nil {
		return nil, err
	}
`, `	if bits := c.Task.Umask; bits != 0 {
		argv = append([]string{"sh", "-c", fmt.Sprintf("umask %04o && exec \"$0\" \"$@\"", bits), path}, argv[1:]...)
		path = "/bin/sh"
	}
`}},
}

// buildNewer implements the script command "newer PROGRAM". It builds a newer version of runner; see newerSource.
func buildNewer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: newer PROGRAM")
	}
	root, err := os.Getwd()
	ts.Check(err)
	replace := map[string]string{}
	for name, inserts := range newerSource {
		text, err := os.ReadFile(filepath.Join(root, name))
		ts.Check(err)
		changed := string(text)
		for _, insert := range inserts {
			if strings.Count(changed, insert[0]) != 1 {
				ts.Fatalf("%s: got %d times %q, want it once", name, strings.Count(changed, insert[0]), insert[0])
			}
			changed = strings.Replace(changed, insert[0], insert[0]+insert[1], 1)
		}
		path := ts.MkAbs("newer-" + strings.ReplaceAll(name, "/", "-"))
		ts.Check(os.WriteFile(path, []byte(changed), 0o600))
		replace[filepath.Join(root, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	ts.Check(err)
	path := ts.MkAbs("newer-overlay.json")
	ts.Check(os.WriteFile(path, overlay, 0o600))
	build := exec.Command("go", "build", "-overlay", path, "-ldflags", "-s -w", "-o", ts.MkAbs(args[0]), ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("build the newer version: %v\n%s", err, out)
	}
}
