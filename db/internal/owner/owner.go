// Package owner returns the owner of a file.
package owner
