package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

// jsonVersion is the version of the JSON output. It increases when a key of a record is removed or renamed.
const jsonVersion = 1

// commit is the source commit of this program. The linker sets it with the options in scripts/env. If it is empty, the build information of
// Go may contain the commit.
var commit string

// Version is the record that --version --json prints.
type Version struct {
	Version     string `json:"version"`
	Commit      string `json:"commit"` // commit of the source; empty if unknown
	JSONVersion int    `json:"json_version"`
	Schema      int    `json:"schema"` // version of the schema that this program writes
	SQLite      string `json:"sqlite"`
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
}

func thisVersion() Version {
	release := strings.Split(runtime.Version(), ".") // the first two parts are the version without the patch number: go1.26 for go1.26.8
	return Version{Version: runner.Version, Commit: cmp.Or(commit, builtFrom()), JSONVersion: jsonVersion, Schema: admin.SchemaVersion(),
		SQLite: admin.EngineVersion(), Go: strings.Join(release[:min(2, len(release))], "."), OS: runtime.GOOS, Arch: runtime.GOARCH}
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
func PrintVersion(p *term.Printer) error {
	v := thisVersion()
	if p.JSON {
		return p.Record(v)
	}
	p.Print(fmt.Sprintf("runner %s (commit %s, schema %d, sqlite %s, %s, %s/%s)\n", v.Version, cmp.Or(v.Commit, "unknown"), v.Schema,
		v.SQLite, v.Go, v.OS, v.Arch))
	return nil
}
