package ops

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"example.com/runner/internal/ui"
)

// OwnProgram returns the path of this program. If the runner in PATH is this
// program, that is its path in PATH, even if it is a symbolic link: an upgrade
// may replace the link's target, but the link keeps its path.
func OwnProgram() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", err
	}

	info, err := os.Stat(own)
	if err != nil {
		return "", err
	}
	if named, err := exec.LookPath("runner"); err == nil && filepath.IsAbs(named) {
		if other, err := os.Stat(named); err == nil && os.SameFile(info, other) {
			return named, nil
		}
	}

	return own, nil
}

// SettingsFile returns the path of the file in which users set environment
// variables for the unit. The path is for messages and may begin with ~.
func (u Unit) SettingsFile() string {
	if u.PerUser {
		return "~/.config/" + u.Name + ".env"
	}
	return "/etc/default/" + u.Name
}

// Explain converts an error of Install or Uninstall to a message with a hint.
func (u Unit) Explain(ctx context.Context, verb string, err error) error {
	if ctx.Err() != nil {
		return err
	}

	f := &ui.Error{Code: "service", Exit: 1, What: "cannot " + verb + " " + u.Name + ".service", Cause: err}
	switch {
	case errors.Is(err, ErrNotRunning):
		f.What = "systemd does not run here"
		if u.PerUser {
			f.What = "systemd does not run for this user"
			f.Because("it needs a login session, which su and sudo do not start")
		}
		return f.Because("another supervisor can run the worker").Hint("runner work")
	case errors.Is(err, ErrForeign):
		return f.Because(u.File() + " was not written by this command").Hint("move the file away, or use --name NAME")
	}

	scope := ""
	if u.PerUser {
		scope = "--user "
	}

	return f.Because(err.Error()).Hint("journalctl %s-u %s -n 20", scope, u.Name)
}
