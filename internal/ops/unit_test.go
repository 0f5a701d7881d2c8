//go:build unix

package ops

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/test/testkit"
)

// units are the unit files in contrib.
const units = "../../contrib/systemd/"

// fakeSystemctl puts a fake program "systemctl" into PATH. The program reports
// that systemd is running, and writes its arguments to a file. fakeSystemctl
// returns the path of that file.
func fakeSystemctl(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := "#!/bin/sh\necho \"$@\" >>" + calls + "\ncase \"$1 $2\" in *is-system-running*) echo running;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

// machineService returns the unit of the machine, with temporary directories.
// The user who runs the test also runs the worker.
func machineService(t *testing.T) Unit {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return Unit{Name: "runner", Template: testkit.ReadFile(t, units+"runner.service"), Program: "/usr/bin/runner", RunAs: me.Username,
		Dir: t.TempDir()}
}

func TestInstallWritesUnitOnceAndUninstallRemovesIt(t *testing.T) {
	calls := fakeSystemctl(t)
	u := machineService(t)
	for _, changed := range []bool{true, false} {
		got, err := u.Install(t.Context())
		if want := (Result{File: u.File(), Changed: changed}); err != nil || got != want {
			t.Errorf("install: got %+v, %v; want %+v", got, err, want)
		}
	}
	for _, changed := range []bool{true, false} {
		got, err := u.Uninstall(t.Context())
		if want := (Result{File: u.File(), Changed: changed}); err != nil || got != want {
			t.Errorf("uninstall: got %+v, %v; want %+v", got, err, want)
		}
	}
	const check, enable = "is-system-running\n", "daemon-reload\nenable runner.service\n"
	want := check + enable + "restart runner.service\n" + check + enable + "start runner.service\n" +
		check + "disable --now runner.service\ndaemon-reload\n" + check
	testkit.Equal(t, "calls of systemctl", string(testkit.ReadFile(t, calls)), want)
}

func TestUnknownUserIsError(t *testing.T) {
	fakeSystemctl(t)
	u := machineService(t)
	u.RunAs = "no-such-user-here"
	if _, err := u.Install(t.Context()); err == nil || !strings.Contains(err.Error(), u.RunAs) {
		t.Errorf("got %v; want an error that names the user", err)
	}
	if _, err := os.Stat(u.File()); err == nil {
		t.Error("the unit was written; want no file")
	}
}

func TestForeignUnitsStay(t *testing.T) {
	fakeSystemctl(t)
	u := machineService(t)
	if err := os.WriteFile(u.File(), []byte("[Service]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(context.Context) (Result, error){"install": u.Install, "uninstall": u.Uninstall} {
		if _, err := change(t.Context()); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: got %v; want %v", name, err, ErrForeign)
		}
	}
}

// TestTextIsTemplate checks that the text of a unit with default values equals
// the file in contrib. So packages and "service install" install the same unit.
func TestTextIsTemplate(t *testing.T) {
	for _, file := range []string{"runner.service", "user/runner.service"} {
		u := Unit{Template: testkit.ReadFile(t, units+file), Program: "/usr/bin/runner"}
		if got := u.Text(); !bytes.Equal(got, u.Template) {
			t.Errorf("%s: got\n%s; want the file", file, got)
		}
	}
}

// TestSystemdAcceptsUnit checks that systemd-analyze accepts the installed
// unit, even if it contains characters that systemd expands.
func TestSystemdAcceptsUnit(t *testing.T) {
	verify := testkit.Program(t, "systemd-analyze")
	fakeSystemctl(t)
	program := filepath.Join(t.TempDir(), "a 100% runner")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, perUser := range []bool{false, true} {
		u := machineService(t)
		scope := "--system"
		if u.PerUser = perUser; perUser {
			u.Template, scope = testkit.ReadFile(t, units+"user/runner.service"), "--user"
		}
		u.Program, u.Database = program, `/srv/a $HOME %n "b" c\d.db`
		u.Template = bytes.ReplaceAll(u.Template, []byte("Documentation=man:runner(1)\n"), nil) // the manual page may be missing
		r, err := u.Install(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), verify, scope, "verify", "--recursive-errors=no", r.File)
		command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		if said, err := command.CombinedOutput(); err != nil || len(bytes.TrimSpace(said)) > 0 {
			t.Errorf("%s: got %v\n%s; want no message", scope, err, said)
		}
	}
}

// TestServiceOfAnotherUserHasItsOwnDirectory checks StateDirectory= in the
// unit. All services of the user runner share one directory and the database in
// it. A service of another user has a directory with the name of the service.
func TestServiceOfAnotherUserHasItsOwnDirectory(t *testing.T) {
	for _, c := range []struct{ name, runAs, want string }{
		{"runner", "runner", "runner"}, {"runner", "reports", "runner"}, {"media", "runner", "runner"}, {"nightly", "reports", "nightly"},
	} {
		u := Unit{Name: c.name, RunAs: c.runAs, Template: testkit.ReadFile(t, units+"runner.service"), Program: "/usr/bin/runner"}
		want := "\nUser=" + c.runAs + "\nStateDirectory=" + c.want + "\nStateDirectoryMode=0700\n"
		if text := string(u.Text()); !strings.Contains(text, want) {
			t.Errorf("service %s of user %s: got\n%s; want%s", c.name, c.runAs, text, want)
		}
		testkit.Equal(t, "directory", u.StateDirectory(), c.want)
	}
}
