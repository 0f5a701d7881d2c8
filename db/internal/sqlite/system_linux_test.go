package sqlite

import "testing"

func TestMountNameReadsMountTable(t *testing.T) {
	const mounts = "22 1 0:21 / / rw - ext4 /dev/vda rw\n36 22 0:98 / /mnt/x rw,noatime master:1 - fuse.sshfs host:/dir rw,user_id=0\n"
	for _, c := range []struct {
		minor uint32
		want  string
	}{{21, "ext4"}, {98, "fuse.sshfs"}, {99, ""}} {
		if got := mountName(mounts, 0, c.minor); got != c.want {
			t.Errorf("device 0:%d: got file system %q, want %q", c.minor, got, c.want)
		}
	}
}

func TestLocalFilesystemsAreAccepted(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm"} {
		if got := networkFS(dir); got != "" {
			t.Errorf("%s: got network file system %q, want none", dir, got)
		}
	}
}
