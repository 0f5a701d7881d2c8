package invocation

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/runner/internal/failure"
)

// Zone is the name of this machine's time zone. A schedule keeps the name: "local" would mean something else on another
// machine, or in a worker whose TZ differs.
func Zone(getenv func(string) string) (string, error) {
	name, set := strings.TrimPrefix(getenv("TZ"), ":"), getenv("TZ") != ""
	if !set {
		name = installedZone("/etc/localtime", "/etc/timezone")
	}
	name = zoneOf(name)
	if _, err := time.LoadLocation(name); err != nil || name == "" {
		where := "this machine does not tell"
		if set {
			where = "TZ is " + getenv("TZ")
		}
		return "", failure.Usage("which time zone? %s", where).Hint("--zone Europe/Berlin")
	}
	return name, nil
}

// installedZone reads the name from where systems keep it; a machine that says nothing is on UTC.
func installedZone(link, file string) string {
	if path, err := filepath.EvalSymlinks(link); err == nil && path != link {
		return path
	}
	if text, err := os.ReadFile(file); err == nil {
		return strings.TrimSpace(string(text))
	}
	if _, err := os.Stat(link); err == nil {
		return "" // a copy of some zone
	}
	return "UTC"
}

// zoneOf takes the name of a zone out of a path into the system's zones.
func zoneOf(name string) string {
	if !filepath.IsAbs(name) {
		return name
	}
	_, after, found := strings.Cut(name, "/zoneinfo/")
	if !found {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(after, "posix/"), "right/")
}
