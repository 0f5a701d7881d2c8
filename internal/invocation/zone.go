package invocation

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/runner/internal/failure"
)

// Zone returns the name of this machine's time zone. Schedules store the name instead of "local", because "local" would mean a different
// zone on another machine or in a worker with another TZ.
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

// installedZone returns the zone as a name or a path, from the files where systems store it. It returns UTC if no file exists, and an
// empty string if the name is unknown.
func installedZone(link, file string) string {
	if path, err := filepath.EvalSymlinks(link); err == nil && path != link {
		return path
	}
	if text, err := os.ReadFile(file); err == nil {
		return strings.TrimSpace(string(text))
	}
	if _, err := os.Stat(link); err == nil {
		return "" // the file is a copy of an unknown zone
	}
	return "UTC"
}

// zoneOf returns the zone name from a path in the system's directory of zones.
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
