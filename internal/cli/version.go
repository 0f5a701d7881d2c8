package cli

import (
	"fmt"
	"runtime"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

// jsonVersion increases when a record loses or renames a key.
const jsonVersion = 1

// Version is the record that --version --json prints.
type Version struct {
	Version     string `json:"version"`
	JSONVersion int    `json:"json_version"`
	Schema      int    `json:"schema"` // version of the schema that this program writes
	SQLite      string `json:"sqlite"`
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
}

func thisVersion() Version {
	release := strings.Split(runtime.Version(), ".") // go1.26.8: the first two numbers are the version of the language
	return Version{Version: runner.Version, JSONVersion: jsonVersion, Schema: admin.SchemaVersion(), SQLite: admin.EngineVersion(),
		Go: strings.Join(release[:min(2, len(release))], "."), OS: runtime.GOOS, Arch: runtime.GOARCH}
}

func printVersion(p *term.Printer) error {
	v := thisVersion()
	if p.JSON {
		return p.Record(v)
	}
	p.Print(fmt.Sprintf("runner %s (sqlite %s, %s, %s/%s)\n", v.Version, v.SQLite, v.Go, v.OS, v.Arch))
	return nil
}
