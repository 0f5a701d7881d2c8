//go:build !linux

package torture

import (
	"os"
	"os/exec"
)

const supported = false

type tag struct {
	pid              int
	worker           string
	task, generation int64
}

type spawner struct{}

var shapes []func(*exec.Cmd)

func newSpawner() *spawner                 { return &spawner{} }
func (*spawner) start(*exec.Cmd) error     { return ErrUnsupported }
func monotonic() int64                     { return 0 }
func kill(int) error                       { return ErrUnsupported }
func stop(int) error                       { return ErrUnsupported }
func goOn(int) error                       { return ErrUnsupported }
func terminate(int) error                  { return ErrUnsupported }
func ignoreTerminate()                     {}
func parentOf(int) (int, string)           { return 0, "" }
func guardiansOf(int) []int                { return nil }
func tagged(...string) []tag               { return nil }
func diskSpace(string) (free, total int64) { return 0, 0 }
func processes() []int                     { return nil }
func within(string) []int                  { return nil }
func reserve(*os.File, int64)              {}

func seize(string, int64) (*os.File, bool, error) { return nil, false, ErrUnsupported }
