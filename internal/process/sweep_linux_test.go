package process

import (
	"slices"
	"testing"
)

func tagged(script, worker, id, generation string) Command {
	c := shell(script)
	c.Env = append(c.Env, workerTag+worker, idTag+id, generationTag+generation)
	return c
}

func TestSweepFindsByEnvironmentAndBySession(t *testing.T) {
	mine, r := startPiped(t, tagged("setsid sleep 60 & echo $!; exec sleep 60", worker, "7", "3"))
	child := number(t, r)
	bare, r := startPiped(t, shell("sleep 60 & echo $!; exec sleep 60")) // nothing but its session tells whose it is
	bareChild := number(t, r)
	other, _ := startPiped(t, tagged("exec sleep 60", worker, "8", "3"))
	stranger, _ := startPiped(t, tagged("exec sleep 60", "not-"+worker, "7", "3"))
	ended := func(p *Process) bool { return !running(p.Pid()) }
	records := []Record{{Key{7, 3}, bare.Pid(), started(bare.Pid())}, {Key{7, 3}, stranger.Pid(), started(stranger.Pid()) - 1}}

	if !Sweep(worker, []Key{{7, 2}}, records) || ended(mine) || ended(bare) {
		t.Error("an older generation was swept")
	}
	if !Sweep(worker, []Key{{7, 3}}, records) {
		t.Error("not clean")
	}
	if !ended(mine) || !ended(bare) || running(child) || running(bareChild) {
		t.Error("something was left")
	}
	if ended(other) || ended(stranger) {
		t.Error("a stranger was killed")
	}
	if !Sweep(worker, nil, nil) || !ended(other) || ended(stranger) {
		t.Error("not all of the worker")
	}
	stranger.Kill()
	for _, p := range []*Process{mine, bare, other, stranger} {
		wait(t, p)
	}
}

func TestTags(t *testing.T) {
	worker, key := tags([]byte("A=1\x00RUNNER_TASK_ID=12\x00XRUNNER_WORKER_ID=no\x00RUNNER_WORKER_ID=w-1\x00RUNNER_TASK_GENERATION=5\x00"))
	if worker != "w-1" || key != (Key{12, 5}) {
		t.Error(worker, key)
	}
	if worker, key := tags(nil); worker != "" || key != (Key{}) {
		t.Error(worker, key)
	}
	if !slices.Contains(processes(), 1) || started(1<<30) != 0 || owner(1<<30) != -1 {
		t.Error("/proc is read wrongly")
	}
}
