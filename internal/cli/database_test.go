package cli

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/failure"
	"example.com/runner/runner"
)

func TestLocateDatabase(t *testing.T) {
	owner := func(uid int) func(string) (int, bool) {
		return func(dir string) (int, bool) { return uid, dir == "/var/lib/runner" && uid >= 0 }
	}
	for _, test := range []struct {
		flag, env  string
		uid, owner int
		goos       string
		path, from string
	}{
		{"x.db", "RUNNER_DB=/e.db HOME=/h", 7, -1, "linux", "x.db", "--db"},
		{"", "RUNNER_DB=/e.db STATE_DIRECTORY=/s HOME=/h", 7, -1, "linux", "/e.db", "$RUNNER_DB"},
		{"", "RUNNER_DB= STATE_DIRECTORY=/s:/t HOME=/h", 0, 0, "linux", "/s/runner.db", "$STATE_DIRECTORY"},
		{"", "HOME=/h", 0, 9, "linux", "/var/lib/runner/runner.db", ""},
		{"", "HOME=/h", 9, 9, "freebsd", "/var/lib/runner/runner.db", ""},
		{"", "HOME=/h", 9, 9, "darwin", "/h/Library/Application Support/runner/runner.db", ""},
		{"", "HOME=/h", 8, 9, "linux", "/h/.local/state/runner/runner.db", ""},
		{"", "HOME=/h", 0, -1, "linux", "/h/.local/state/runner/runner.db", ""},
		{"", "HOME=/h XDG_STATE_HOME=/x/", 8, 9, "linux", "/x/runner/runner.db", ""},
		{"", "HOME=/h XDG_STATE_HOME=x", 8, 9, "linux", "/h/.local/state/runner/runner.db", ""},
		{"", `LocalAppData=C:\L`, -1, -1, "windows", `C:\L\runner\runner.db`, ""},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		d, err := locateDatabase(test.flag, func(n string) string { return env[n] }, test.uid, test.goos, owner(test.owner))
		if err != nil || d.Path != test.path || d.from != test.from || d.standard != (test.from == "" || test.from == "$STATE_DIRECTORY") {
			t.Errorf("%+v: got %+v %v; want no error, d.Path = test.path, d.from = test.from, d.standard = (test.from "+
				`== "" || test.from == "$STATE_DIRECTORY")`,
				test, d, err)
		}
	}
	none := func(string) string { return "" }
	_, err := locateDatabase("", none, 8, "linux", owner(-1))
	if failure.ExitCode(err) != 1 || !strings.Contains(failure.Explain(err).What+failure.Explain(err).Try, "RUNNER_DB") {
		t.Errorf("no HOME: %v", err)
	}
}

func TestNobodyIsShownAPassword(t *testing.T) {
	none := func(string) string { return "" }
	owner := func(string) (int, bool) { return -1, false }
	for address, want := range map[string]string{
		"postgres://h/d": "", "postgres://u@h:5432/d?sslmode=disable": "", "postgresql://h/d?search_path=jobs": "",
		"postgres://u@/d?host=/tmp/a:b@c":         "",
		"postgres://u:s3cret@h/d":                 "postgres://u@h/d",
		"postgres://u:s3:c@ret@h:1,i:2/d":         "postgres://u@h:1,i:2/d",
		"postgresql://h/d?password=s3cret&user=u": "postgresql://h/d?password=xxxxx&user=u",
		"postgres://h/d?sslpassword=s3cret":       "postgres://h/d?sslpassword=xxxxx",
	} {
		d := database{Path: address}
		if got := d.shown(); got != cmp.Or(want, address) || strings.Contains(got, "s3") {
			t.Errorf("%s is shown as %s, want %s", address, got, cmp.Or(want, address))
		}
		if _, err := locateDatabase(address, none, 8, "linux", owner); (err != nil) != (want != "") || err != nil &&
			(failure.ExitCode(err) != 2 || strings.Contains(err.Error(), "s3")) {
			t.Errorf("--db %s: %v", address, err)
		}
		if _, err := locateDatabase("", func(string) string { return address }, 8, "linux", owner); err != nil {
			t.Errorf("RUNNER_DB=%s: %v", address, err)
		}
	}
}

func TestOpenCreatesWhatItMay(t *testing.T) {
	state := t.TempDir()
	open := func(create bool, args ...string) (text string, err error) {
		var out, talk bytes.Buffer
		a := &App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &talk, Now: time.Now, Getenv: func(name string) string {
			return map[string]string{"STATE_DIRECTORY": state + "/service", "RUNNER_FORCE_TTY": "80"}[name]
		}}
		list := []*Command{{Name: "open", Action: func(c *Context) error {
			r, err := a.Open(c, create, runner.Options{})
			if err != nil {
				return err
			}
			return r.Close()
		}}}
		globals := GlobalOptions()
		line, err := Parse(list, globals, append([]string{"open"}, args...), a.Getenv)
		a.Printer = a.printerFor(line)
		if err == nil {
			err = newCLI(list, globals).RunContext(context.Background(), line.argv())
		}
		return talk.String(), err
	}
	file := filepath.Join(state, "service", "runner.db")
	if _, err := open(false); failure.ExitCode(err) != 1 || failure.Explain(err).Code != "no_database" {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("a command that does not create made the directory")
	}
	if text, err := open(true); err != nil || text != "created "+file+"\n" {
		t.Errorf("created: %q %v", text, err)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v %v", info, err)
	}
	if text, err := open(false, "-v"); err != nil || text != "database: "+file+"   (from $STATE_DIRECTORY)\n" {
		t.Errorf("opened: %q %v", text, err)
	}
	if _, err := open(true, "--db", filepath.Join(state, "nodir", "x.db")); failure.ExitCode(err) != 1 ||
		failure.Explain(err).Code != "no_database" {
		t.Errorf("the parent of a path that somebody named is not created: %v", err)
	}
}
