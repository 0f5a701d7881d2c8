package supervisor

import (
	"bytes"
	"hash/fnv"
	"math/bits"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Mark names the attempt that a process belongs to. A guardian gives it to its command as two soft resource limits: RLIMIT_LOCKS, which no
// kernel has enforced since Linux 2.4, and RLIMIT_RTTIME, which limits realtime threads only and is set to more than half an hour (on 64-bit
// systems: centuries). The kernel hands limits down to children and keeps them over exec, setsid, setuid and a cleared environment, and
// every user can read them in /proc.
//
// A guardian goes by parentage while it lives. The mark is for everybody else: a worker whose guardian was killed, a worker that takes over
// from a dead one, and doctor.
type Mark struct {
	task  uint64 // RLIMIT_LOCKS: the id of the task
	claim uint64 // RLIMIT_RTTIME: a fixed pattern, a hash of the worker's id, and the lowest bits of the generation
}

// The layout of Mark.claim. A limit has 32 bits on 32-bit systems. Neither word is ever RLIM_INFINITY, all ones.
var (
	wordMask                            = uint64(1)<<(bits.UintSize-1) - 1 // of Mark.task
	pattern, workerBits, generationBits = uint64(0xa5), 32, 24
)

func init() {
	if bits.UintSize == 32 {
		pattern, workerBits, generationBits = 2, 15, 15
	}
}

// MarkOf returns the mark of an attempt.
func MarkOf(worker string, k Key) Mark {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(worker)) // never fails
	claim := pattern<<workerBits | uint64(hash.Sum32())&(1<<workerBits-1)
	return Mark{uint64(k.ID) & wordMask, claim<<generationBits | uint64(k.Generation)&(1<<generationBits-1)}
}

// Of says whether m is the mark of some attempt of a worker.
func (m Mark) OwnedBy(worker string) bool {
	return m.claim>>generationBits == MarkOf(worker, Key{}).claim>>generationBits
}

// Task returns the id of the task. On 32-bit systems its highest bits are missing.
func (m Mark) Task() int64 { return int64(m.task) }

func (m Mark) valid() bool {
	return m.claim>>(generationBits+workerBits) == pattern && m.task <= wordMask
}

// limits are the resource limits that carry a mark, with the words of /proc for them.
var limits = [2]struct {
	resource int
	name     []byte
}{{unix.RLIMIT_LOCKS, []byte("Max file locks")}, {unix.RLIMIT_RTTIME, []byte("Max realtime timeout")}}

// SetMark gives a process a mark; 0 is this process.
func SetMark(pid int, m Mark) error {
	for i, word := range [2]uint64{m.task, m.claim} {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, limits[i].resource, nil, &limit); err != nil {
			return os.NewSyscallError("prlimit", err)
		}
		limit.Cur = word // the hard limit stays
		if err := unix.Prlimit(pid, limits[i].resource, &limit, nil); err != nil {
			return os.NewSyscallError("prlimit", err)
		}
	}
	return nil
}

// readMark returns the mark of a process. It is not valid if the process has none, or is gone.
func readMark(pid int) Mark {
	var words [2]uint64
	for i := range limits {
		var limit unix.Rlimit
		if unix.Prlimit(pid, limits[i].resource, nil, &limit) != nil { // the process of another user; or a filter of system calls
			return markFromProc(pid)
		}
		words[i] = limit.Cur
	}
	return Mark{words[0], words[1]}
}

// markFromProc is readMark by /proc, which everybody may read.
func markFromProc(pid int) Mark {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	var words [2]uint64
	for i := range limits {
		_, after, _ := bytes.Cut(text, limits[i].name)
		if field := bytes.Fields(after); len(field) > 0 {
			words[i], _ = strconv.ParseUint(string(field[0]), 10, 64) // "unlimited" is no mark
		}
	}
	return Mark{words[0], words[1]}
}
