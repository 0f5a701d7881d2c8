// Package taskspec has the list of task options and the validation of tasks, schedules and limits. It defines the valid values of each
// option, the limits of the other fields, and the form in which options are stored.
package taskspec
