package usercode

// Commands returns where a *jobs.Handler keeps the options of commands, which
// package runner/commands sets and Work reads. Package jobs sets this variable.
var Commands func(handler any) *any
