// Package output waits for tasks, and reads and prints their output, also while
// they run.
package output
