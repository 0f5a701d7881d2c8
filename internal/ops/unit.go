package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// header is the first line of a unit file that Install writes. Install and
// Uninstall leave other files alone.
const header = "# Written by runner service install.\n"

// systemUser runs the machine's worker. Install creates it.
const systemUser = "runner"

// ErrForeign means that a unit file exists that Install didn't write.
var ErrForeign = errors.New("runner service install did not write this file")

// ErrNotRunning means that systemd doesn't run on this machine, or not for this
// user.
var ErrNotRunning = errors.New("systemd does not run here")

// Unit is the systemd unit of a worker.
type Unit struct {
	Name     string // name without ".service"
	PerUser  bool   // whether the unit belongs to a user; otherwise it belongs to the machine
	Template []byte // text of the unit in contrib/systemd
	Program  string // absolute path of the program runner
	Database string // database of the worker; empty if the unit doesn't name one
	RunAs    string // user who runs the worker of the machine

	Dir string // directory for the unit file
}

// Directory returns the directory for a new unit file. config is the user's
// directory for configuration files.
func Directory(perUser bool, config string) string {
	if perUser {
		return filepath.Join(config, "systemd/user")
	}
	return "/etc/systemd/system"
}

// Result describes the changes that Install or Uninstall has made.
type Result struct {
	File    string // path of the unit file
	Changed bool   // whether the file was written or removed
	NewUser string // name of the user that was created; empty if none was
}

// File returns the path of the unit file that Install writes.
func (u Unit) File() string { return filepath.Join(u.Dir, u.service()) }

func (u Unit) service() string { return u.Name + ".service" }

// StateDirectory returns the name of a directory in /var/lib, which systemd
// creates for the machine's worker and gives to the worker's user. A service
// that runs as another user than runner needs one of its own, or systemd would
// give that user the directory of runner.
func (u Unit) StateDirectory() string {
	if u.RunAs == systemUser {
		return systemUser
	}
	return u.Name
}

// Text returns the content of the unit file: the template with this program,
// database and user.
func (u Unit) Text() []byte {
	var b bytes.Buffer
	for line := range strings.Lines(string(u.Template)) {
		switch {
		case strings.HasPrefix(line, "ExecStart="):
			line = "ExecStart=" + quote(u.Program) + " work"
			if u.Database != "" {
				line += " --db " + quote(u.Database)
			}
			line += "\n"
		case strings.HasPrefix(line, "User=") && u.RunAs != "":
			line = "User=" + u.RunAs + "\n"
		case strings.HasPrefix(line, "StateDirectory=") && u.RunAs != "":
			line = "StateDirectory=" + u.StateDirectory() + "\n"
		}
		b.WriteString(line)
	}

	return b.Bytes()
}

// quote quotes a word of ExecStart=. systemd would expand % and $, so it
// escapes them too.
func quote(word string) string {
	word = strings.NewReplacer(`%`, `%%`, `$`, `$$`, `\`, `\\`, `"`, `\"`).Replace(word)
	if strings.ContainsAny(word, " \t\"'\\;") {
		return `"` + word + `"`
	}
	return word
}

// Install writes the unit file, enables the unit and starts the worker. It
// writes and restarts only if the file changes.
func (u Unit) Install(ctx context.Context) (Result, error) {
	if err := u.requireManager(ctx); err != nil {
		return Result{}, err
	}

	var newUser string
	if !u.PerUser {
		var err error
		if newUser, err = createUser(ctx, u.RunAs); err != nil {
			return Result{}, err
		}
	}

	r, err := u.write()
	if r.NewUser = newUser; err != nil {
		return r, err
	}

	start := "start"
	if r.Changed {
		start = "restart"
	}

	for _, args := range [][]string{{"daemon-reload"}, {"enable", u.service()}, {start, u.service()}} {
		if _, err := u.systemctl(ctx, args...); err != nil {
			return r, err
		}
	}

	return r, nil
}

// write writes the unit file, unless an equal one exists.
func (u Unit) write() (Result, error) {
	text := append([]byte(header), u.Text()...)
	own, err := os.ReadFile(u.File())
	switch {
	case err == nil && !bytes.HasPrefix(own, []byte(header)):
		return Result{File: u.File()}, ErrForeign
	case err == nil && bytes.Equal(own, text):
		return Result{File: u.File()}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Result{}, err
	}

	if err := os.MkdirAll(u.Dir, 0o755); err != nil {
		return Result{}, err
	}

	return Result{File: u.File(), Changed: true}, os.WriteFile(u.File(), text, 0o644)
}

// Uninstall stops the worker, disables its unit and removes the file that
// Install wrote. Database and user stay.
func (u Unit) Uninstall(ctx context.Context) (Result, error) {
	if err := u.requireManager(ctx); err != nil {
		return Result{}, err
	}

	r := Result{File: u.File()}
	own, err := os.ReadFile(u.File())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return r, err
	case !bytes.HasPrefix(own, []byte(header)):
		return r, ErrForeign
	}

	if _, err := u.systemctl(ctx, "disable", "--now", u.service()); err != nil {
		return r, err
	}

	r.Changed = true
	if err := os.Remove(u.File()); err != nil {
		return r, err
	}

	_, err = u.systemctl(ctx, "daemon-reload")
	return r, err
}

// requireManager returns ErrNotRunning unless systemd runs for the machine or
// the user.
func (u Unit) requireManager(ctx context.Context) error {
	// The state decides, not the error: is-system-running also fails while
	// systemd runs, for example if a unit has failed.
	state, err := u.systemctl(ctx, "is-system-running")
	if state == "" || state == "offline" || state == "unknown" {
		return errors.Join(ErrNotRunning, err)
	}
	return nil
}

// systemctl runs systemctl and returns its stdout.
func (u Unit) systemctl(ctx context.Context, args ...string) (string, error) {
	if u.PerUser {
		args = append([]string{"--user"}, args...)
	}
	return output(ctx, "systemctl", args...)
}

// createUser creates the user of the machine's worker if it doesn't exist, and
// returns its name if it did.
func createUser(ctx context.Context, name string) (string, error) {
	_, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); !unknown || name != systemUser {
		return "", err
	}
	_, err = output(ctx, "useradd", "--system", "--home-dir", "/var/lib/runner", "--shell", "/usr/sbin/nologin", name)
	return name, err
}

// output runs a program and returns its stdout without the last newline. An
// error contains its stderr.
func output(ctx context.Context, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return text, err
}
