package sqlite

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// networkMagic lists network filesystems by the magic number of statfs. networkNames lists network filesystems that use FUSE by their
// name in the mount table. The locks and shared memory of all these filesystems depend on a remote server, and are unreliable.
var (
	networkMagic = map[int64]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.SMB_SUPER_MAGIC: "smb", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "smb2",
		unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph", unix.CODA_SUPER_MAGIC: "coda",
	}
	networkNames = map[string]bool{"virtiofs": true, "fuse.sshfs": true, "fuse.glusterfs": true, "fuse.s3fs": true, "fuse.rclone": true,
		"fuse.davfs2": true, "fuse.cephfs": true}
)

// networkFS returns the name of the network filesystem of path. It returns an empty name if the filesystem is local or unknown.
func networkFS(path string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return ""
	}
	if name := networkMagic[int64(fs.Type)]; name != "" || fs.Type != unix.FUSE_SUPER_MAGIC {
		return name
	}
	if name := filesystem(path); networkNames[name] {
		return name
	}
	return ""
}

// filesystem returns the type of the filesystem of path, such as ext4. It returns an empty name if the type is unknown.
func filesystem(path string) string {
	var stat unix.Stat_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || unix.Stat(path, &stat) != nil {
		return ""
	}
	return mountName(string(mounts), unix.Major(stat.Dev), unix.Minor(stat.Dev))
}

// mountName returns the type of the filesystem on a device, fuse.sshfs in this line of the mount table:
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - fuse.sshfs host:/dir rw
func mountName(mounts string, major, minor uint32) string {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mounts) {
		mount, kind, ok := strings.Cut(line, " - ")
		if fields := strings.Fields(mount); ok && len(fields) > 2 && fields[2] == device {
			name, _, _ := strings.Cut(kind, " ")
			return name
		}
	}
	return ""
}
