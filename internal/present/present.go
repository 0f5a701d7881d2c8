// Package present turns the data of package runner into text. The text describes errors and problems, why a task waits, and how it ended.
// The command line and the pages share this package, so both use the same words.
package present
