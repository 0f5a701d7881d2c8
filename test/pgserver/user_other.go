//go:build !unix

package pgserver

import "os/exec"

// asNobody does nothing on this system.
func asNobody(*exec.Cmd) {}
