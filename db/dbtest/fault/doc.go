// Package fault simulates a disk for tests. It is a layer between SQLite and
// the operating system, and decides for each operation on a database whether
// the operation fails. The product does not import this package. Importing it
// makes the layer the default VFS of the process. Without a Disk, the layer
// passes all operations to the operating system.
package fault
