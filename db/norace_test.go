//go:build !race

package db

// usualStride: some hundred points in half a minute of processor time; make failures takes them all.
const usualStride = 5
