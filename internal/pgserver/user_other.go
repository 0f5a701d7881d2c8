//go:build !unix

package pgserver

import "os/exec"

// asNobody leaves the command as it is: there is no root.
func asNobody(*exec.Cmd) {}
