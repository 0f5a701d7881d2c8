// Package fault simulates a disk for tests. It sits between SQLite and the operating system and decides for each
// operation on a database whether it fails. The product does not import it. Importing it makes its layer the
// default of the process; without a Disk the layer passes all operations on.
package fault
