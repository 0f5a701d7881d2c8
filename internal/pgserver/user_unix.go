//go:build unix

package pgserver

import (
	"os"
	"os/exec"
	"syscall"
)

// asNobody makes a command run as nobody where this process is root: a server refuses to be that.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
