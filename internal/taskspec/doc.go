// Package taskspec has the list of task options and the rules for what a task, a schedule and a limit may be: the values that each option
// takes, the limits of the other fields, and the form in which options are stored.
package taskspec
