package supervisor

import (
	"bytes"
	"hash/fnv"
	"math/bits"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Mark identifies the attempt that a process belongs to. A guardian sets it on its command as two soft resource limits,
// RLIMIT_LOCKS and RLIMIT_RTTIME. No kernel since Linux 2.4 enforces the first one. The second one limits only realtime
// threads, and the mark sets it to more than half an hour (on 64-bit systems: centuries). Children inherit limits.
// Neither exec, setsid, setuid nor a cleared environment changes them, and every user can read them in /proc.
//
// A living guardian identifies processes by parentage. The mark is for other programs: a worker whose guardian was
// killed, a worker that takes over from a dead one, and the command runner doctor.
type Mark struct {
	task  uint64 // value of RLIMIT_LOCKS: the id of the task
	claim uint64 // value of RLIMIT_RTTIME: a fixed pattern, a hash of the worker's id, and the lowest bits of the generation
}

// These variables describe how a Mark uses the bits of its two resource limits. On 32-bit systems a resource limit has
// 32 bits. A Mark never sets all bits of a resource limit, because that value is RLIM_INFINITY.
var (
	wordMask                            = uint64(1)<<(bits.UintSize-1) - 1 // mask of the bits that Mark.task uses
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
	_, _ = hash.Write([]byte(worker)) // a hash never returns an error
	claim := pattern<<workerBits | uint64(hash.Sum32())&(1<<workerBits-1)
	return Mark{uint64(k.ID) & wordMask, claim<<generationBits | uint64(k.Generation)&(1<<generationBits-1)}
}

// OwnedBy reports whether m is the mark of an attempt of the worker.
func (m Mark) OwnedBy(worker string) bool {
	return m.claim>>generationBits == MarkOf(worker, Key{}).claim>>generationBits
}

// Task returns the id of the task. On 32-bit systems the highest bits are missing.
func (m Mark) Task() int64 { return int64(m.task) }

func (m Mark) valid() bool {
	return m.claim>>(generationBits+workerBits) == pattern && m.task <= wordMask
}

// limits are the resource limits whose values store the mark of a process, with their names in /proc/PID/limits.
var limits = [2]struct {
	resource int
	name     []byte
}{{unix.RLIMIT_LOCKS, []byte("Max file locks")}, {unix.RLIMIT_RTTIME, []byte("Max realtime timeout")}}

// SetMark sets the mark of a process. The pid 0 means this process.
func SetMark(pid int, m Mark) error {
	for i, word := range [2]uint64{m.task, m.claim} {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, limits[i].resource, nil, &limit); err != nil {
			return os.NewSyscallError("prlimit", err)
		}
		limit.Cur = word // only the soft limit changes
		if err := unix.Prlimit(pid, limits[i].resource, &limit, nil); err != nil {
			return os.NewSyscallError("prlimit", err)
		}
	}
	return nil
}

// readMark returns the mark of a process. The mark is not valid if the process has none or is gone.
func readMark(pid int) Mark {
	var words [2]uint64
	for i := range limits {
		var limit unix.Rlimit
		// Prlimit fails for a process of another user, or if a seccomp filter denies the call.
		if unix.Prlimit(pid, limits[i].resource, nil, &limit) != nil {
			return markFromProc(pid)
		}
		words[i] = limit.Cur
	}
	return Mark{words[0], words[1]}
}

// markFromProc returns the mark of a process from /proc, which every user may read.
func markFromProc(pid int) Mark {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	var words [2]uint64
	for i := range limits {
		_, after, _ := bytes.Cut(text, limits[i].name)
		if field := bytes.Fields(after); len(field) > 0 {
			// If the field is "unlimited", ParseUint returns 0. No mark has an unlimited limit.
			words[i], _ = strconv.ParseUint(string(field[0]), 10, 64)
		}
	}
	return Mark{words[0], words[1]}
}
