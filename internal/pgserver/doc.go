// Package pgserver starts temporary PostgreSQL servers from installed binaries, for tests and for runner selftest
// --postgres. Each server has its data in a temporary directory. It listens only on a Unix socket in that directory.
package pgserver
