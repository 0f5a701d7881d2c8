package db

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/runner/jobs"
)

// TestExposedMatrix tries every combination of owner, group, mode and user of the worker. Uid 0 is root, 7 the worker's user, and 9
// another user.
func TestExposedMatrix(t *testing.T) {
	named := func(uid, gid int) bool { return uid == gid }
	for _, me := range []int{0, 7} {
		for _, uid := range []int{0, 7, 9} {
			for _, gid := range []int{0, 7, 9} {
				for bits := range fs.FileMode(0o1000) {
					why, try := exposed(bits, uid, gid, me, named)
					safe := (uid == me || uid == 0) && bits&0o002 == 0 && (bits&0o020 == 0 || uid == gid)
					if (why == "") != safe || (try == "") != safe {
						t.Fatalf("%v of %d:%d for a worker of %d: %q, %q", bits, uid, gid, me, why, try)
					}
				}
			}
		}
	}
	if why, _ := exposed(0o777|fs.ModeSticky|fs.ModeDir, 0, 0, 7, named); why == "" {
		t.Error("the sticky bit is no protection")
	}
}

// TestInsecureLooksAtAllThree tries modes on a real disk: of the file, of its directory, and of the directory beside it.
func TestInsecureLooksAtAllThree(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // Windows has no file modes
	}
	for _, part := range []string{"", "/x.db", "/x.db.d"} {
		for mode, safe := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o702: false, 0o777: false, 0o707: false} {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.db")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(path+".d", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir+part, mode); err != nil {
				t.Fatal(err)
			}
			err := Insecure(path)
			if (err == nil) != safe {
				t.Errorf("got %s %v: %v, want (err == nil) = safe", part, mode, err)
			}
			p, _ := err.(*jobs.Error)
			if !safe && (p == nil || p.Kind != jobs.ErrPermission || !strings.Contains(p.What, " may be written by everyone") ||
				!strings.Contains(p.Hint, "chmod o-w "+dir+part)) {
				t.Errorf(`got %+v; want not (!safe && (p == nil || Kind != ErrPermission || !Contains(What, " may be `+
					`written by everyone") || !Contains(Hint, "chmod o-w "+dir+part)))`,
					p)
			}
		}
	}
	if err := Insecure(filepath.Join(t.TempDir(), "none", "x.db")); err != nil {
		t.Error(err)
	}
}

func TestInsecureFollowsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	open, closed := t.TempDir(), t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(open, "x.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(closed, "x.db")
	if err := os.Symlink(filepath.Join(open, "x.db"), link); err != nil {
		t.Fatal(err)
	}
	if err := Insecure(link); err == nil {
		t.Error("the directory of the file itself counts")
	}
}
