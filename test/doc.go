// Package test has the checks of the repository: the pages in docs, the imports of the packages, what contrib holds, and a test that runs
// workers for a long time. The tests of a package stand beside its code.
package test
