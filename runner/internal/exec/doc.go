// Package exec runs the commands of tasks. It builds their environment, starts
// them under a guardian, captures their output and reads their results.
//
// Command (command.go) is one attempt of a task that runs a command. Guardians
// (guardians.go) is the pool of guardian processes of a worker. Capture
// (capture.go) keeps the output of an attempt, whether a command or a function
// prints it.
package exec
