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

// TestExposedForEveryOwnerAndMode tries every combination of owner, group, mode and user of the worker. In this test, uid 0 is root, uid 7
// is the worker's user, and uid 9 is another user.
func TestExposedForEveryOwnerAndMode(t *testing.T) {
	named := func(uid, gid int) bool { return uid == gid }
	for _, me := range []int{0, 7} {
		for _, uid := range []int{0, 7, 9} {
			for _, gid := range []int{0, 7, 9} {
				for bits := range fs.FileMode(0o1000) {
					why, try := exposed(bits, uid, gid, me, named)
					safe := (uid == me || uid == 0) && bits&0o002 == 0 && (bits&0o020 == 0 || uid == gid)
					if (why == "") != safe || (try == "") != safe {
						t.Fatalf("mode %v, owner %d:%d, worker's user %d: got reason %q and hint %q, want both: %v",
							bits, uid, gid, me, why, try, !safe)
					}
				}
			}
		}
	}
	if why, _ := exposed(0o777|fs.ModeSticky|fs.ModeDir, 0, 0, 7, named); why == "" {
		t.Error("mode 1777: got no reason, want one, because the sticky bit does not protect the file")
	}
}

// TestInsecureChecksTheFileAndBothDirectories changes the mode of the file, of its directory, and of the directory beside it.
func TestInsecureChecksTheFileAndBothDirectories(t *testing.T) {
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
				t.Errorf("mode %v of DIR%s: got error %v, want an error: %v", mode, part, err, !safe)
			}
			p, _ := err.(*jobs.Error)
			if !safe && (p == nil || p.Kind != jobs.ErrPermission || !strings.Contains(p.What, " may be written by everyone") ||
				!strings.Contains(p.Hint, "chmod o-w "+dir+part)) {
				t.Errorf(`mode %v of DIR%s: got error %+v, want one that is %v, says "may be written by everyone" and hints "chmod o-w %s"`,
					mode, part, p, jobs.ErrPermission, dir+part)
			}
		}
	}
	if err := Insecure(filepath.Join(t.TempDir(), "none", "x.db")); err != nil {
		t.Errorf("a file that does not exist: got error %v, want none", err)
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
		t.Error("got no error, want one, because everyone can write to the directory that the link leads to")
	}
}
