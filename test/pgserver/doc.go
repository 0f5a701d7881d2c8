// Package pgserver starts temporary PostgreSQL servers, for tests, benchmarks
// and test/selftest. PostgreSQL must be installed. Each server has its data in
// a temporary directory and listens only on a Unix socket in that directory.
package pgserver
