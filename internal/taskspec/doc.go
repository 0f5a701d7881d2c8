// Package taskspec contains the list of task options. It validates tasks, schedules and limits. It also defines how the database stores the
// options of a task.
package taskspec
