package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
)

// jsonVersion is the version of the JSON output. It increases when a key of a record is removed or renamed.
const jsonVersion = 1

// commit is the source commit of this program. The linker sets it with the options in scripts/env. If it is empty, the build information of
// Go may contain the commit.
var commit string

// Version returns the record that --version --json prints.
func Version() ui.Record {
	release := strings.Split(runtime.Version(), ".") // the first two parts are the version without the patch number: go1.26 for go1.26.8
	return ui.NewRecord("version", runner.Version, "commit", cmp.Or(commit, builtFrom()), "json_version", jsonVersion,
		"schema", admin.SchemaVersion(), "sqlite", admin.EngineVersion(), "go", strings.Join(release[:min(2, len(release))], "."),
		"os", runtime.GOOS, "arch", runtime.GOARCH)
}

// builtFrom returns the source commit that "go build" has stored in the program. It adds "-modified" if some files were changed after that
// commit.
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

// PrintVersion prints the versions of the program and of its parts.
func PrintVersion(p *ui.Printer) error {
	v := Version()
	text := fmt.Sprintf("runner %s (commit %s, schema %d, sqlite %s, %s, %s/%s)", runner.Version,
		cmp.Or(commit, builtFrom(), "unknown"), admin.SchemaVersion(), admin.EngineVersion(), v.Get("go"), runtime.GOOS, runtime.GOARCH)
	return p.Answer(v, text+"\n", text)
}
