package harness

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
)

const nobody = 65534 // unprivileged user and group to which commands change

// inCgroup reports whether the guardian of this command has a cgroup.
func inCgroup() bool {
	text, _ := os.ReadFile("/proc/self/cgroup")
	return regexp.MustCompile(`(?m)^0::.*/runner-`).Match(text)
}

// setStartTraits prepares the command c to start a process with these traits.
func setStartTraits(c *exec.Cmd, traits []string) {
	attr := &syscall.SysProcAttr{Setpgid: slices.Contains(traits, ownGroup), Setsid: slices.Contains(traits, ownSession)}
	if slices.Contains(traits, asSibling) {
		attr.Cloneflags = syscall.CLONE_PARENT
	}
	c.SysProcAttr = attr
}

// setOwnTraits gives this process the traits that a parent can't give it.
func setOwnTraits(traits []string) {
	if slices.Contains(traits, ignoresSIGTERM) {
		ignoreTerminate()
	}
	if slices.Contains(traits, changesUser) {
		_ = dropPrivileges() // without the right to change its user, a process keeps its user
	}
	if slices.Contains(traits, undumpable) {
		const setDumpable = 4 // PR_SET_DUMPABLE; the argument 0 hides the environment from all users except root
		_, _, _ = syscall.Syscall(syscall.SYS_PRCTL, setDumpable, 0, 0)
	}
}

// dropPrivileges changes to another user. It does nothing unless this process
// runs as root.
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

// ownMounts gives a command its own mount namespace, so that other processes
// don't see its mounts.
func ownMounts(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} }

// bind makes a bind mount of a single file at another path.
func bind(file, at string) error { return syscall.Mount(file, at, "", syscall.MS_BIND, "") }
