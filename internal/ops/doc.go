// Package ops is what a worker and its administrator need from the machine: the
// checks of doctor, the log, systemd, and the process that enqueues a task with
// its directory, PATH and time zone.
package ops
