// Package present words what package runner returns as data: errors, problems, why a task waits, how it ended. The command line and
// the pages share it, so that both say the same.
package present
