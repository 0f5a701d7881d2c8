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

	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
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
		testkit.NoError(t, err)
		testkit.Equal(t, "path", d.Path, test.path)
		testkit.Equal(t, "from", d.from, test.from)
		if elsewhere := d.Path == "/h/.local/state/runner/runner.db" || d.Path == "/x/runner/runner.db"; elsewhere && test.owner >= 0 {
			testkit.Equal(t, "database of the service", d.service, "/var/lib/runner/runner.db")
		} else {
			testkit.Equal(t, "database of the service", d.service, "")
		}
		testkit.Equal(t, "standard", d.standard, (test.from == "" || test.from == "$STATE_DIRECTORY"))
	}
	none := func(string) string { return "" }
	_, err := locateDatabase("", none, 8, "linux", owner(-1))
	testkit.Equal(t, "exit status without HOME", ui.ExitCode(err), 1)
	testkit.Contains(t, ui.Explain(err).What+ui.Explain(err).Try, "RUNNER_DB")
}

func TestErrorsDoNotShowPassword(t *testing.T) {
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
		if got, _, _ := strings.Cut(d.describe(), "   (from "); got != cmp.Or(want, address) || strings.Contains(got, "s3") {
			t.Errorf("%s is shown as %s, want %s", address, got, cmp.Or(want, address))
		}
		_, err := locateDatabase(address, none, 8, "linux", owner)
		testkit.Equal(t, "--db "+address+": is rejected", err != nil, want != "")
		if err != nil && (ui.ExitCode(err) != 2 || strings.Contains(err.Error(), "s3")) {
			t.Errorf("--db %s: got error %v, want exit status 2 and no password", address, err)
		}
		_, err = locateDatabase("", func(string) string { return address }, 8, "linux", owner)
		testkit.NoError(t, err)
	}
}

func TestOpenCreatesOnlyStandardDatabase(t *testing.T) {
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
		globals := a.GlobalOptions()
		line, err := Parse(list, globals, append([]string{"open"}, args...), a.Getenv)
		a.Printer = ui.New(ui.Settings{Stdout: &out, Stderr: &talk, Getenv: a.Getenv, Now: a.Now, Verbose: line.isSet("verbose")})
		if err == nil {
			err = line.run(context.Background())
		}
		return talk.String(), err
	}
	file := filepath.Join(state, "service", "runner.db")
	_, err := open(false)
	testkit.Equal(t, "exit status without a database", ui.ExitCode(err), 1)
	testkit.Equal(t, "code without a database", ui.Explain(err).Code, "no_database")
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("got a new directory from a command that only opens, want none")
	}
	text, err := open(true)
	testkit.NoError(t, err)
	testkit.Equal(t, "text after the creation", text, "created "+file+"\n")
	info, err := os.Stat(filepath.Dir(file))
	testkit.NoError(t, err)
	testkit.Equal(t, "mode of the directory", info.Mode().Perm(), 0o700)
	text, err = open(false, "-v")
	testkit.NoError(t, err)
	testkit.Equal(t, "text after the open", text, "database: "+file+"   (from $STATE_DIRECTORY)\n")
	_, err = open(true, "--db", filepath.Join(state, "nodir", "x.db"))
	testkit.Equal(t, "exit status without the directory", ui.ExitCode(err), 1)
	testkit.Equal(t, "code without the directory", ui.Explain(err).Code, "no_database")
}
