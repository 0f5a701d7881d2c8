// Package owner tells whose a file is.
package owner
