// Package fault is the disk as tests want it: it stands between SQLite and the operating system, sees each operation on a database
// and says whether it works. The product knows nothing of it: importing this package, as tests do, makes its layer the default of
// the process, and without a Disk it passes everything on.
package fault
