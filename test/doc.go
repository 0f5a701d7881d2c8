// Package test checks the repository: the pages in docs, the imports of the
// packages, and the files in contrib. It also has a test that runs workers for
// a long time. The tests of a package are in the package's folder.
package test
