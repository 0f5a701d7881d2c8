//go:build !race

package dbtest

// raceDetector reports whether the race detector is on.
const raceDetector = false
