package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// storm is a worker that starts commands which leave something in every way, as fast as it can, until it is killed.
func storm(path, worker string) {
	lock, err := NewLock(path)
	if err != nil {
		panic(err)
	}
	g, err := StartGuardian(GuardianOptions{Version: "test", Worker: worker, Lock: lock})
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Pid())
	script := `sleep 61.5 & setsid sleep 61.5 & env -i setsid -f sleep 61.5`
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				id := generation.Add(1)
				child, err := g.Start(context.Background(), tagged(script, worker, "7", strconv.FormatInt(id, 10)), Key{7, id}, time.Now().Add(time.Minute))
				if err != nil {
					return
				}
				if id%2 == 0 {
					_, _ = child.Wait()
				}
			}
		})
	}
	wg.Wait()
}

// sleepers lists the living processes of a storm that were started since.
func sleepers(since uint64) (pids []int) {
	for _, pid := range processes() {
		words, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if bytes.HasPrefix(words, []byte("sleep\x0061.5\x00")) && running(pid) && started(pid) >= since {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestWorkerKilledInAStormOfStartsLeavesNothing(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	var longest time.Duration
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "x.lock")
		worker := fmt.Sprintf("storm-%d-%d", os.Getpid(), round)
		p, r := startPiped(t, self(t, "storm", path, worker))
		guardian := number(t, r)
		since := started(guardian)
		time.Sleep(time.Duration(rand.Int64N(int64(150 * time.Millisecond))))
		began := time.Now()
		// Not p.Kill: what it starts is in sessions of its own, but the group is the worker's alone.
		if err := unix.Kill(p.Pid(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var lock *Lock
		eventually(t, "the lock is free", func() bool {
			var err error
			lock, err = TakeLock(path)
			if err != nil && !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			return err == nil
		})
		longest = max(longest, time.Since(began))
		if lock.Mark() != Clean {
			t.Error("the guardian did not come to its end")
		}
		if left := sleepers(since); len(left) > 0 {
			t.Errorf("round %d: %d processes left", round, len(left))
		}
		lock.Close()
		wait(t, p)
	}
	t.Log("lock free at the latest after", longest)
}
