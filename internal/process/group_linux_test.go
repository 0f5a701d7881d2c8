package process

import (
	"testing"
	"time"
)

// A worker that takes over kills the cgroup of a guardian that hangs. When that guardian goes on, its next command must live: the kernel kills
// every process that is started into a cgroup that was killed.
func TestACommandLivesAfterSomebodyElseHasKilledTheCgroup(t *testing.T) {
	g, lock := guarded(t)
	killed, key, _ := bear(t, g, "exec sleep 300", time.Minute)
	if _, clean := Sweep(worker, []Key{key}, lock.Records()); !clean {
		t.Fatal("got processes that the sweep has left, want none")
	}
	if exit, err := ends(t, killed); exit.Signal != 9 || err != nil {
		t.Fatalf("got %+v, %v; want signal 9", exit, err)
	}
	next, _, _ := bear(t, g, "exit 0", time.Minute)
	if exit, err := ends(t, next); exit.Signal != 0 || exit.Code != 0 || err != nil {
		t.Errorf("the next command: got %+v, %v; want exit status 0", exit, err)
	}
}
