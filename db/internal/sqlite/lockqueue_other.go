//go:build !linux

package sqlite

import (
	"sync/atomic"
	"time"
)

// There is no queue on this system. A process that waits for the write lock tries again and again.

func sleepWhile(*atomic.Uint32, uint32, time.Duration) bool { return false }
func wake(*atomic.Uint32, int) bool                         { return false }
func (*sharedMemory) word(uintptr) *atomic.Uint32           { return nil }

const commitsAt, queueAt, quickAt = 0, 0, 0
