package invocation

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/runner/internal/failure"
)

// Zone returns the name of this machine's time zone. A schedule stores this name and not "local", because the meaning of "local" depends on
// the machine and on the variable TZ of the worker.
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

// installedZone returns the time zone of the operating system, as a name or as a path in the zone database. The parameters are the paths of
// the symbolic link and the file that set the zone. installedZone returns UTC if neither exists, and an empty string if it cannot find the
// name.
func installedZone(link, file string) string {
	if path, err := filepath.EvalSymlinks(link); err == nil && path != link {
		return path
	}
	if text, err := os.ReadFile(file); err == nil {
		return strings.TrimSpace(string(text))
	}
	if _, err := os.Stat(link); err == nil {
		return "" // the file at the path "link" is a copy of a zone file, which does not contain the name of the zone
	}
	return "UTC"
}

// zoneOf returns the name of the time zone that is stored at a path.
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
