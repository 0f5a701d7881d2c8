package db

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/runner/jobs"
)

func TestMountNameReadsTheMountTable(t *testing.T) {
	const mounts = "22 1 0:21 / / rw - ext4 /dev/vda rw\n36 22 0:98 / /mnt/x rw,noatime master:1 - fuse.sshfs host:/dir rw,user_id=0\n"
	for _, c := range []struct {
		minor uint32
		want  string
	}{{21, "ext4"}, {98, "fuse.sshfs"}, {99, ""}} {
		if got := mountName(mounts, 0, c.minor); got != c.want {
			t.Errorf("device 0:%d is %q, want %q", c.minor, got, c.want)
		}
	}
}

func TestLocalFilesystemsAreAccepted(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm"} {
		if kind := networkFS(dir); kind != "" {
			t.Errorf("%s counts as %s", dir, kind)
		}
	}
}

func TestAFileWithTwoNamesIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	d, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, jobs.ErrPermission) {
		t.Errorf("opened: %v", err)
	}
}
