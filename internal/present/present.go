// Package present turns the data of package runner into text: errors, problems, why a task waits, how it ended. The command line and the
// pages share it, so both use the same words.
package present
