//go:build !linux

package harness

import (
	"os"
	"os/exec"
)

const supported = false

type spawner struct{}

func newSpawner() *spawner                 { return &spawner{} }
func (*spawner) end()                      {}
func (*spawner) start(*exec.Cmd) error     { return ErrUnsupported }
func monotonic() int64                     { return 0 }
func kill(int) error                       { return ErrUnsupported }
func stop(int) error                       { return ErrUnsupported }
func resume(int) error                     { return ErrUnsupported }
func terminate(int) error                  { return ErrUnsupported }
func ignoreTerminate()                     {}
func parentOf(int) (int, string)           { return 0, "" }
func startTime(int) int64                  { return 0 }
func inCgroup() bool                       { return false }
func setStartTraits(*exec.Cmd, []string)   {}
func setOwnTraits([]string)                {}
func dropPrivileges() error                { return ErrUnsupported }
func ownMounts(*exec.Cmd)                  {}
func bind(string, string) error            { return ErrUnsupported }
func diskSpace(string) (free, total int64) { return 0, 0 }
func allPIDs() []int                       { return nil }
func processesOf(string) []int             { return nil }
func reserve(*os.File, int64)              {}

func lockTask(string, int64) (*os.File, bool, error) { return nil, false, ErrUnsupported }
