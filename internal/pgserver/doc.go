// Package pgserver starts temporary PostgreSQL servers from installed binaries, for tests and for runner selftest
// --postgres. Each server has its data in a temporary directory and listens on a Unix socket in it only.
package pgserver
