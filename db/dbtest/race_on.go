//go:build race

package dbtest

const raceDetector = true
