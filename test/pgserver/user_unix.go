//go:build unix

package pgserver

import (
	"os"
	"os/exec"
	"syscall"
)

// asNobody makes a command run as the user nobody if this process runs as root,
// because PostgreSQL refuses to run as root.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
