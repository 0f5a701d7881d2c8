package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"example.com/runner/internal/supervisor"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/internal/exec"
)

// CommandOptions are commands.Options, which has their documentation.
type CommandOptions struct {
	Timeout       time.Duration
	LeaveChildren bool
	OutputLimit   int64
	Hooks         command.Hooks
	InsecurePerms bool
	GuardianPath  string
	OwnProcess    bool
	Tee           func(task jobs.Task, stream string, data []byte)
	PagesURL      string
}

// Commands is what package commands attaches to its handler. Only NewCommands
// refers to these functions, so the linker leaves guardians out of a program
// with functions only.
type Commands struct {
	CommandOptions
	check    func(guardianPath string) error
	start    func(e *Engine) guardians
	dedicate func() error
	deaths   func() (deaths <-chan os.Signal, stop func())
	reap     func()
}

// guardians is a *commandWorker.
type guardians interface {
	Prepare()
	Renew(keys []supervisor.Key, deadline time.Time)
	Close() bool
}

// NewCommands returns what lets a worker run commands.
func NewCommands(o CommandOptions) Commands {
	return Commands{o, exec.CheckGuardian, startGuardians, supervisor.Dedicate, supervisor.Deaths, supervisor.ReapAdopted}
}

// CommandsOf returns what package commands has attached to a handler. It
// returns nil for any other handler.
func CommandsOf(h jobs.Handler) *Commands {
	c, ok := (*usercode.Commands(&h)).(Commands)
	if !ok {
		return nil
	}
	return &c
}

type commandWorker struct {
	*supervisor.Guardians
	shared exec.Worker
}

func startGuardians(e *Engine) guardians {
	dir, _ := os.Getwd() // without a directory, hooks run in /
	g := supervisor.NewGuardians(supervisor.GuardiansOptions{Path: e.c.GuardianPath, Version: e.o.Version, Worker: e.info.ID,
		Lock: e.lock, Log: e.log, Fail: e.fail})
	return &commandWorker{g, exec.Worker{Store: e.store, Guardians: g, Environ: exec.Environ(os.Environ()), Dir: dir, Log: e.log}}
}

// RunCommand runs the command of the attempt that ctx belongs to.
func RunCommand(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
	a := attemptFrom(ctx)
	if a == nil {
		return nil, errors.New("only Work runs commands")
	}
	w := a.e.guardians.(*commandWorker)
	c := exec.Command{Worker: &w.shared, Stdin: a.e.o.Stdin, Task: task, Stop: a.ctx, Kill: a.kill, Deadline: a.currentDeadline,
		Output: a.capture()}
	c.Output.Tee, c.PagesURL = a.e.c.Tee, a.e.c.PagesURL
	c.Task.LeaveChildren = task.LeaveChildren || a.e.c.LeaveChildren
	defer func() { a.childrenKilled, a.childrenLeft, a.usage = c.ChildrenKilled, c.ChildrenLeft, c.Usage }()

	return c.Run()
}
