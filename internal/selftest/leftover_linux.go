package selftest

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
)

const nobody = 65534 // the unprivileged user and group that commands change to

// shape makes a command start a process in one of the ways that words name.
func setStartTraits(c *exec.Cmd, traits []string) {
	attr := &syscall.SysProcAttr{Setpgid: slices.Contains(traits, ownGroup), Setsid: slices.Contains(traits, ownSession)}
	if slices.Contains(traits, asSibling) {
		attr.Cloneflags = syscall.CLONE_PARENT
	}
	c.SysProcAttr = attr
}

// settle makes this process as hard to find and to end as words say.
func setOwnTraits(traits []string) {
	if slices.Contains(traits, ignoresSIGTERM) {
		ignoreTerminate()
	}
	if slices.Contains(traits, changesUser) {
		_ = dropPrivileges() // without the right to it stays what it is
	}
	if slices.Contains(traits, undumpable) {
		const setDumpable = 4 // PR_SET_DUMPABLE; 0: other users cannot read the environment, and neither can this one
		_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, setDumpable, 0, 0)
	}
}

// dropPrivileges makes this process one of another user. It does nothing without root's rights.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(nobody); err != nil {
		return err
	}
	return syscall.Setuid(nobody)
}

// ownMounts gives a command a mount namespace of its own, so that nothing it mounts is seen elsewhere.
func ownMounts(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} }

// bind mounts a single file at another path.
func bind(file, at string) error { return syscall.Mount(file, at, "", syscall.MS_BIND, "") }
