// Package input reads many tasks or schedules: JSON Lines for enqueue --batch
// and schedule apply, and lines that are arguments of commands for enqueue
// --each.
package input
