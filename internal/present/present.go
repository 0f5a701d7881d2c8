// Package present turns the data of package runner into sentences: about errors and problems, about why a task waits, and about how it
// ended. The command line and the web pages both use this package, so they use the same words.
package present
