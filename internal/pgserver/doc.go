// Package pgserver starts throw-away PostgreSQL servers from the binaries that are installed, for tests: initdb into a temporary directory,
// a Unix socket there and no other address.
package pgserver
