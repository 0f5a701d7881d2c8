//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestArgumentsArriveByteForByte(t *testing.T) {
	words := []string{"show words", "two words", "", "$HOME `id` 'a' \"b\" \\", "line\nline\r\n", "\xff\xfe\x80", "", "*", "-"}
	got, exit := output(t, self(t, words...))
	if want := strings.Join(words[1:], "\x00"); got != want || exit.Code != 0 {
		t.Errorf("got %q, exit status %d; want %q, 0", got, exit.Code, want)
	}
}

func TestCommandGetsExactlyGivenEnvironment(t *testing.T) {
	t.Setenv("NOT_FOR_THE_COMMAND", "x")
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{nil, {}, {"A=1", "B=two words\nline", "A=2", "C=\xff", "no sign"}} {
		got, _ := output(t, Command{Path: env, Argv: []string{"env"}, Env: want})
		if lines := strings.Join(want, "\n"); strings.TrimSuffix(got, "\n") != lines {
			t.Errorf("got %q, want %q", got, lines)
		}
	}
}

func TestCommandRunsInItsDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := shell("pwd")
	c.Dir = dir
	if got, _ := output(t, c); got != dir+"\n" {
		t.Errorf("got %q, want %q", got, dir+"\n")
	}
}

func TestStandardFilesAreNullDeviceUnlessGiven(t *testing.T) {
	if got, exit := output(t, shell("cat; echo lost >&2; echo kept")); got != "kept\n" || exit.Code != 0 {
		t.Errorf("got %q, %+v; want \"kept\\n\", exit status 0", got, exit)
	}
	in, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	fmt.Fprint(in, "input")
	in.Seek(0, io.SeekStart)
	c := shell("cat")
	c.Stdin = in
	if got, _ := output(t, c); got != "input" {
		t.Errorf("got %q, want \"input\"", got)
	}
}

func TestOwnSessionAndGroupWithoutTerminal(t *testing.T) {
	p, r := startPiped(t, shell("(: </dev/tty) 2>/dev/null && echo 1 || echo 0; exec sleep 600"))
	if number(t, r) != 0 {
		t.Error("the command has a terminal, want none")
	}
	sid, err := unix.Getsid(p.Pid())
	if err != nil || sid != p.Pid() {
		t.Errorf("got session %d, error %v; want %d", sid, err, p.Pid())
	}
	pgid, err := unix.Getpgid(p.Pid())
	if err != nil || pgid != p.Pid() {
		t.Errorf("got process group %d, error %v; want %d", pgid, err, p.Pid())
	}
	p.Kill()
	wait(t, p)
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, odd := file("plain", "#!/bin/sh\n", 0o644), file("odd", "\x00\x01", 0o755)
	for _, tt := range []struct {
		name string
		c    Command
		want error
	}{
		{name: "not found", c: Command{Path: dir + "/missing"}, want: unix.ENOENT},
		{name: "no path", c: Command{}, want: unix.ENOENT},
		{name: "not found in a good directory", c: Command{Path: dir + "/missing", Dir: dir}, want: unix.ENOENT},
		{name: "not executable", c: Command{Path: plain, Dir: dir}, want: unix.EACCES},
		{name: "a directory", c: Command{Path: dir}, want: unix.EACCES},
		{name: "below a file", c: Command{Path: plain + "/x"}, want: unix.ENOTDIR},
		{name: "no program", c: Command{Path: odd}, want: unix.ENOEXEC},
		{name: "interpreter not found", c: Command{Path: file("script", "#!/missing\n", 0o755)}, want: unix.ENOENT},
		{name: "NUL in a word", c: Command{Path: plain, Argv: []string{"a\x00"}}, want: unix.EINVAL},
		{name: "directory missing", c: Command{Path: "/bin/sh", Dir: dir + "/missing"}, want: unix.ENOENT},
		{name: "directory is a file", c: Command{Path: "/bin/sh", Dir: plain}, want: unix.ENOTDIR},
		{name: "both missing", c: Command{Path: dir + "/missing", Dir: dir + "/missing"}, want: unix.ENOENT},
	} {
		if tt.c.Argv == nil {
			tt.c.Argv = []string{"x"}
		}
		_, err := Start(tt.c)
		if !errors.Is(err, tt.want) || OutOfResources(err) {
			t.Errorf("%s: got error %v; want %v", tt.name, err, tt.want)
		}
	}
	if _, err := Start(Command{Path: "/bin/sh"}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("empty argv: got error %v, want %v", err, unix.EINVAL)
	}
	if got, _ := output(t, self(t, "no descriptors")); got != "true true" {
		t.Errorf("no free descriptor: got %q, want \"true true\"", got)
	}
}

func TestManyStartsAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			p, err := Start(shell(fmt.Sprintf("exit %d", i)))
			if err != nil {
				t.Errorf("start: got error %v, want none", err)
				return
			}
			if exit := wait(t, p); exit.Code != i {
				t.Errorf("got %+v, want exit status %d", exit, i)
			}
		})
	}
	wg.Wait()
}
