//go:build race

package db

// stride: the race detector makes SQLite ten times as slow, and finds nothing in it. Every so many points will do.
const stride = 37
