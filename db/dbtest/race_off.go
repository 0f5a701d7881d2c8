//go:build !race

package dbtest

// raceDetector says whether the race detector is on.
const raceDetector = false
