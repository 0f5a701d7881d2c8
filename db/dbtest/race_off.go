//go:build !race

package dbtest

// raceDetector says whether the tests run under it.
const raceDetector = false
