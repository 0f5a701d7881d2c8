package main

import (
	"fmt"
	"runtime"
	"strings"
)

// version of this release. jsonVersion grows when a record loses or renames a key.
const (
	version     = "0.1.0"
	jsonVersion = 1
)

// versionRecord is what --version --json prints.
type versionRecord struct {
	Version     string `json:"version"`
	JSONVersion int    `json:"json_version"`
	Schema      *int   `json:"schema"` // of the databases that this binary writes
	SQLite      string `json:"sqlite"`
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
}

func thisVersion() versionRecord {
	release := strings.Split(runtime.Version(), ".") // go1.26.8: the first two say which language
	return versionRecord{Version: version, JSONVersion: jsonVersion, SQLite: sqliteVersion(),
		Go: strings.Join(release[:min(2, len(release))], "."), OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// sqliteVersion and the schema belong to the library below us, which says them.
func sqliteVersion() string { return "3.54.1" }

func printVersion(p *printer) error {
	v := thisVersion()
	if p.json {
		return p.record(v)
	}
	p.print(fmt.Sprintf("runner %s (sqlite %s, %s, %s/%s)\n", v.Version, v.SQLite, v.Go, v.OS, v.Arch))
	return nil
}
