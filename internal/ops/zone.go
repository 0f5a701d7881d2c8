package ops

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/ui"
)

// Zone returns the name of this machine's time zone. A schedule stores this
// name, because what "local" means depends on the machine and the worker's TZ.
func Zone(getenv func(string) string) (string, error) {
	name, where := zoneOf(strings.TrimPrefix(getenv("TZ"), ":")), "TZ is "+getenv("TZ")
	if getenv("TZ") == "" {
		name, where = installedZone("/etc/localtime", "/etc/timezone")
	}
	if _, err := time.LoadLocation(name); err != nil || name == "" {
		return "", ui.Usage("which time zone? %s", where).Hint("--zone Europe/Berlin")
	}
	return name, nil
}

// installedZone returns the time zone of the operating system. link is the zone
// file that the C library uses, mostly a symbolic link into the zone database,
// and file names the zone. Without either, the zone is UTC. The name is empty
// if it can't be found; why then says the reason.
//
// In a container, the zone file may be the host's, and the name the image's. So
// a name counts only if the zone file shows the same times.
func installedZone(link, file string) (name, why string) {
	data, err := os.ReadFile(link)
	target, linkErr := filepath.EvalSymlinks(link)
	text, fileErr := os.ReadFile(file)
	switch {
	case linkErr == nil && target != link:
		name = zoneOf(target)
	case fileErr == nil:
		name = zoneOf(strings.TrimSpace(string(text)))
	case err != nil:
		return "UTC", ""
	}

	if name == "" {
		return "", "this machine does not tell"
	}
	if err == nil && !shows(data, name) {
		return "", link + " has other times than the zone " + name
	}

	return name, ""
}

// shows reports whether the content of a zone file has the times of the named
// zone, from last year to next year. It reports true if either can't be read.
func shows(data []byte, name string) bool {
	file, err := time.LoadLocationFromTZData("", data)
	if err != nil {
		return true
	}

	zone := time.UTC
	// If another file is mounted over that of UTC, LoadLocation would read it.
	if !slices.Contains([]string{"UTC", "UCT", "GMT", "Universal", "Zulu", "Greenwich"}, path.Base(name)) {
		if zone, err = time.LoadLocation(name); err != nil {
			return true
		}
	}

	now := time.Now()
	for at := now.AddDate(-1, 0, 0); at.Before(now.AddDate(1, 0, 0)); at = at.Add(6 * time.Hour) {
		_, a := at.In(file).Zone()
		if _, b := at.In(zone).Zone(); a != b {
			return false
		}
	}

	return true
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
