package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/ui"
)

// jsonVersion increases when a key of a JSON record is removed or renamed.
const jsonVersion = 1

// commit is the source commit. The linker sets it (see scripts/env). If it's
// empty, Go's build information may have it.
var commit string

// builtFrom returns the source commit that go build has stored, with
// "-modified" if files were changed after it.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}

	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}

	if settings["vcs.modified"] == "true" {
		return settings["vcs.revision"] + "-modified"
	}
	return settings["vcs.revision"]
}

// Version returns the record that --version --json prints.
func Version() ui.Record {
	release := strings.Split(runtime.Version(), ".") // without the patch number: go1.26 for go1.26.8
	return ui.NewRecord("version", db.RunnerVersion, "commit", cmp.Or(commit, builtFrom()), "json_version", jsonVersion,
		"schema", db.SchemaVersion(), "sqlite", db.EngineVersion(), "go", strings.Join(release[:min(2, len(release))], "."),
		"os", runtime.GOOS, "arch", runtime.GOARCH)
}

// PrintVersion prints the versions of the program and of its parts.
func PrintVersion(p *ui.Printer) error {
	v := Version()
	text := fmt.Sprintf("runner %s (commit %s, schema %d, sqlite %s, %s, %s/%s)", db.RunnerVersion,
		cmp.Or(commit, builtFrom(), "unknown"), db.SchemaVersion(), db.EngineVersion(), v.Values("go")[0],
		runtime.GOOS, runtime.GOARCH)
	return p.Answer(v, text+"\n", text)
}
