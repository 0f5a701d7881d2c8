package main

// growStack grows its goroutine's stack to the size that SQLite needs to read a
// schema. main calls it while the stack is nearly empty. If the stack grew
// later, inside a call of SQLite, Go would have to move all its frames, and
// read 1.6 MB of tables that a short-lived process needs for nothing else.
// Measured for one `runner enqueue`: 8 % less time, 1.8 MB less memory.
//
// growStack(0) is enough, because each call needs a stack with room for frame.
//
//go:noinline
func growStack(n int) (sum byte) {
	if n > 0 {
		var frame [40 << 10]byte
		for i := range n {
			frame[i%len(frame)] = byte(i)
		}
		sum = frame[n%len(frame)]
	}
	return sum
}
