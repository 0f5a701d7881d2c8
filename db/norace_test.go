//go:build !race

package db

// stride: every point.
const stride = 1
