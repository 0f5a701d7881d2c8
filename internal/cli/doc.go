// Package cli is what the commands share: the database, arguments and options,
// help, completion, the selection of tasks, and the options of a task.
package cli
