package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/runner/jobs"
)

// TestCheckWritersChecksFileAndBothDirectories changes the mode of the file, of
// its directory, and of the directory beside it.
func TestCheckWritersChecksFileAndBothDirectories(t *testing.T) {
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
			err := Path(path).CheckWriters(os.Geteuid())
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

	if err := Path(filepath.Join(t.TempDir(), "none", "x.db")).CheckWriters(os.Geteuid()); err != nil {
		t.Errorf("a file that does not exist: got error %v, want none", err)
	}
}

func TestCheckWritersFollowsLinks(t *testing.T) {
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
	if err := Path(link).CheckWriters(os.Geteuid()); err == nil {
		t.Error("got no error, want one, because everyone can write to the directory that the link leads to")
	}
}
