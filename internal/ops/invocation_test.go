package ops

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/runner/internal/ui"
	"example.com/runner/test/testkit"
)

func TestFindSearchesAsShellDoes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files")
	}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/tool": 0o755, "b/tool": 0o755, "b/plain": 0o644, "c/plain": 0o755, "sub/local": 0o755,
		"sub/plain": 0o644} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/a/plain", 0o755); err != nil { // a directory is not a program
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/sub", dir+"/a/link"); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	here := Invocation{Dir: dir + "/sub", Path: dir + "/a:" + dir + "/b:" + dir + "/c"}
	for _, test := range []struct {
		path, name, cwd string
		want            string // path of the program without dir, or the beginning of the error
		exit            int
	}{
		{here.Path, "tool", "", "/a/tool", 0},
		{here.Path, "plain", "", "/c/plain", 0},
		{dir + "/b", "plain", "", `"` + dir + `/b/plain" cannot be executed: permission denied`, 126},
		{"../b", "tool", "", "/b/tool", 0}, // a relative directory in PATH starts at the directory of the caller
		{dir + "/a:", "local", "", "/sub/local", 0},
		{dir + "/a", "local", "", `"local" not found in PATH`, 127},
		{"", "tool", "", `"tool" not found in PATH`, 127},
		{"", "./local", "", "/sub/local", 0},
		{"", "./tool", dir + "/a", "/a/tool", 0},
		{"", "../b/tool", dir + "/a", "/b/tool", 0},
		{"", "../b/tool", dir + "/a/link", "/b/tool", 0}, // link leads to another directory, so its ".." is not dir/a
		{"", "./plain", "", `"./plain" cannot be executed: permission denied`, 126},
		{"", "./plain", dir + "/a", `"./plain" is a directory`, 126},
		{"", "./nosuch", "", `"./nosuch" not found`, 127},
		{"", dir + "/nosuch/tool", "", `"` + dir + `/nosuch/tool" not found`, 127},
	} {
		here.Path = test.path
		cwd := test.cwd
		if cwd == "" {
			cwd = here.Dir
		}
		got, f := here.Find(test.name, cwd)
		switch {
		case test.exit == 0:
			file, err := filepath.EvalSymlinks(got)
			testkit.NoError(t, err)
			testkit.Equal(t, "file", file, filepath.Clean(real+test.want))
			if f != nil || !filepath.IsAbs(got) {
				t.Errorf("%+v: got %q and error %v, want an absolute path", test, got, f)
			}
		case f == nil || f.Exit != test.exit || f.Code != "start" || !strings.HasPrefix(f.What, test.want):
			t.Errorf("%+v: got %q and error %+v, want exit status %d and %q", test, got, f, test.exit, test.want)
		}
	}
}

func TestErrorsOfEnvironmentShowNoValue(t *testing.T) {
	t.Setenv("SECRET", "pass\xffword")
	for _, settings := range [][]string{{"SECRET"}, {"X=pass\xffword"}, {"NOSUCH_VARIABLE"}} {
		if _, err := Environment(settings, false); ui.ExitCode(err) != 2 || strings.Contains(err.Error(), "pass") {
			t.Errorf("%q: got error %v, want exit status 2 and no value", settings, err)
		}
	}
	t.Setenv("SECRET", "a=b\nc")
	env, err := Environment([]string{"SECRET", "X=", "X=1"}, true)
	testkit.NoError(t, err)
	testkit.Equal(t, "env[SECRET]", env["SECRET"], "a=b\nc")
	testkit.Equal(t, "env[X]", env["X"], "1")
	testkit.Equal(t, "env[PATH]", env["PATH"], os.Getenv("PATH"))
}

// TestInstalledZone makes a zone file and a file with a name, as they are in
// containers and on hosts.
func TestInstalledZone(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there are no such files
	}
	zones := t.TempDir() + "/zoneinfo/"
	for name, zone := range map[string]string{"Europe/Berlin": "Europe/Berlin", "Etc/UTC": "Etc/UTC", "wrong/UTC": "Europe/Berlin"} {
		data, err := zoneData(zone)
		if err != nil {
			t.Skip("no zone database")
		}
		testkit.NoError(t, os.MkdirAll(filepath.Dir(zones+name), 0o700))
		testkit.NoError(t, os.WriteFile(zones+name, data, 0o600))
	}
	for _, test := range []struct {
		title      string
		link, copy string // what the zone file links to, or is a copy of
		named      string // content of the file with the name
		want, why  string
	}{
		{title: "nothing", want: "UTC"},
		{title: "link", link: "Europe/Berlin", named: "Etc/UTC", want: "Europe/Berlin"},
		{title: "copy with its name", copy: "Europe/Berlin", named: "Europe/Berlin\n", want: "Europe/Berlin"},
		{title: "copy with a name of the same times", copy: "Europe/Berlin", named: "Europe/Paris", want: "Europe/Paris"},
		{title: "copy without name", copy: "Europe/Berlin", why: "this machine does not tell"},
		{title: "copy with a stale name", copy: "Europe/Berlin", named: "Etc/UTC", why: "LINK has other times than the zone Etc/UTC"},
		{title: "stale copy", copy: "Etc/UTC", named: "Europe/Berlin", why: "LINK has other times than the zone Europe/Berlin"},
		{title: "mounted over the target", link: "wrong/UTC", why: "LINK has other times than the zone wrong/UTC"},
		{title: "only a name", named: "Asia/Tokyo", want: "Asia/Tokyo"},
	} {
		t.Run(test.title, func(t *testing.T) {
			dir := t.TempDir()
			link, file := dir+"/localtime", dir+"/timezone"
			switch {
			case test.link != "":
				testkit.NoError(t, os.Symlink(zones+test.link, link))
			case test.copy != "":
				testkit.NoError(t, os.Link(zones+test.copy, link))
			}
			if test.named != "" {
				testkit.NoError(t, os.WriteFile(file, []byte(test.named), 0o600))
			}
			name, why := installedZone(link, file)
			if want := strings.Replace(test.why, "LINK", link, 1); name != test.want || why != want {
				t.Errorf("got %q, %q; want %q, %q", name, why, test.want, want)
			}
		})
	}
}

// zoneData returns the zone file of a zone.
func zoneData(name string) ([]byte, error) {
	for _, dir := range []string{"/usr/share/zoneinfo/", "/usr/lib/zoneinfo/", "/usr/share/lib/zoneinfo/"} {
		if data, err := os.ReadFile(dir + name); err == nil {
			return data, nil
		}
	}
	return nil, os.ErrNotExist
}
