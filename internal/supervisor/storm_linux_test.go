package supervisor

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

// storm is a worker that starts commands as fast as it can until it is killed.
// Each command leaves processes behind in several ways.
func storm(path, worker string) {
	sleep := "sleep " + sleepSeconds(worker)
	lock, err := NewLock(path)
	if err != nil {
		panic(err)
	}
	fmt.Println(os.Getpid())
	script := strings.ReplaceAll("sleep & setsid sleep & env -i setsid -f sleep", "sleep", sleep)
	var wg sync.WaitGroup
	for slot := range 4 {
		wg.Go(func() {
			g, err := testGuardians(worker, lock).startGuardian(slot)
			if err != nil {
				return
			}
			for {
				id := generation.Add(1)
				child, err := g.start(shell(script), Key{7, id}, time.Now().Add(time.Hour))
				if err != nil {
					return
				}
				_, _ = child.Wait()
			}
		})
	}
	wg.Wait()
}

// sleepSeconds returns the number of seconds for the sleep commands of the
// function storm. The number identifies these commands among the processes of
// this machine.
func sleepSeconds(worker string) string {
	_, number, _ := strings.Cut(worker, "-")
	return "61." + strings.ReplaceAll(number, "-", "")
}

// sleepers returns the pids of the living sleep commands that the function
// storm has started for a worker.
func sleepers(worker string) (pids []int) {
	for _, pid := range processes() {
		words, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if bytes.HasPrefix(words, []byte("sleep\x00"+sleepSeconds(worker)+"\x00")) && running(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// rounds is the number of repetitions of tests that depend on chance. The
// command make storm uses 200.
var rounds = flag.Int("rounds", 10, "of tests that depend on chance")

func TestWorkerKilledDuringManyStartsLeavesNoProcess(t *testing.T) {
	rounds := *rounds
	if testing.Short() {
		rounds = 2
	}
	var longest time.Duration
	for round := range rounds {
		worker := fmt.Sprintf("storm-%d-%d", os.Getpid(), round)
		path := filepath.Join(t.TempDir(), worker+".lock")
		p, r := startPiped(t, self(t, "storm", path, worker))
		number(t, r) // wait until the worker prints its pid: it then holds the lock
		time.Sleep(time.Duration(rand.Int64N(int64(150 * time.Millisecond))))
		began := time.Now()
		// Kill only the process of the worker. Its guardians and its commands
		// are in sessions of their own, so this signal does not reach them.
		if err := unix.Kill(p.Pid(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var lock *Lock
		testkit.Eventually(t, "the lock is free", func() bool {
			var err error
			lock, err = TakeLock(path)
			if err != nil && !errors.Is(err, ErrHeld) {
				t.Fatal(err)
			}
			return err == nil
		})
		longest = max(longest, time.Since(began))
		if !lock.Clean() {
			t.Error("Clean: got false, want true: a guardian has not cleared its record")
		}
		if left := sleepers(worker); len(left) > 0 {
			t.Errorf("round %d: got %d living processes, want none", round, len(left))
		}
		_ = errors.Join(lock.Remove(), lock.Close())
		wait(t, p)
	}
	t.Log("the longest time until the lock was free:", longest)
}
