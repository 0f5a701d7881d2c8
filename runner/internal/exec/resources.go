package exec

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strconv"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/supervisor"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs/command"
)

// account is the user that runs a command.
type account struct {
	supervisor.User
	name, home string
}

// resources returns the user and the resources of the command. It sets
// c.account if another user runs the command. The error means that the command
// cannot be started.
func (c *Command) resources() (r supervisor.Resources, err error) {
	o := c.Task.Resources
	if o == (command.Resources{}) {
		return r, nil
	}
	if !supervisor.HasGuardians {
		return r, startError(cannotExecute, "the options user, nice, ionice, memory and cpu need a worker on Linux, not on %s",
			runtime.GOOS)
	}

	r.Nice, r.Memory = o.Nice, o.Memory
	r.CPU, _ = taskspec.ParseCPU(o.CPU) // CheckCommand has already checked this value
	if class, level, ok := taskspec.ParseIONice(o.IONice); ok {
		const classShift = 13 // IOPRIO_CLASS_SHIFT
		r.IOPriority = int(class)<<classShift | level
	}
	if o.User == "" {
		return r, nil
	}
	if c.account, err = lookUp(o.User); err != nil {
		return r, startError(cannotExecute, "user: %v", err)
	}
	if os.Geteuid() != 0 && c.account.UID != os.Geteuid() {
		return r, startError(cannotExecute, "user: only a worker that runs as root can run commands as user %s", o.User)
	}
	if os.Geteuid() == 0 {
		r.User = &c.account.User
	}

	return r, nil
}

// lookUp finds a user by name or by id, and all groups of this user.
func lookUp(name string) (*account, error) {
	u, err := user.Lookup(name)
	if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
		if _, notNumber := strconv.Atoi(name); notNumber == nil {
			u, err = user.LookupId(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("unknown user %s", name)
	}

	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("the groups of user %s: %w", name, err)
	}

	a := &account{name: u.Username, home: u.HomeDir}
	for _, id := range slices.Concat([]string{u.Uid, u.Gid}, groups) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s has the id %q, which is not a number", name, id)
		}
		a.Groups = append(a.Groups, int(n))
	}

	a.UID, a.GID, a.Groups = a.Groups[0], a.Groups[1], a.Groups[2:]
	return a, nil
}

// environ returns the variables that a login of the user would set. A nil
// account stands for the user of the worker, and has no such variables.
func (a *account) environ() []string {
	if a == nil {
		return nil
	}
	return []string{"HOME=" + a.home, "USER=" + a.name, "LOGNAME=" + a.name}
}

// own makes the user the owner of files. Otherwise the command could not open
// its own standard output by name (/dev/stdout).
func (a *account) own(files ...*os.File) error {
	if a == nil || os.Geteuid() != 0 {
		return nil
	}

	for _, file := range files {
		if file == nil {
			continue
		}
		if err := file.Chown(a.UID, a.GID); err != nil {
			return err
		}
	}

	return nil
}

// resourceError returns the error of an attempt whose command was not started
// because the worker may not apply one of its resources.
func (c *Command) resourceError(failed *supervisor.ResourceError) error {
	o := c.Task.Resources
	value := map[string]string{
		"nice":   strconv.Itoa(o.Nice),
		"ionice": o.IONice,
		"memory": humanize.ExactSize(o.Memory),
		"cpu":    o.CPU,
	}[failed.Resource]
	hint := "run the worker as root"
	if failed.Resource == "memory" || failed.Resource == "cpu" {
		hint = "it needs control groups (version 2): run it as root, or as a systemd service with Delegate=yes"
	}
	return startError(cannotExecute, "%s: the worker cannot apply %s: %v; %s", failed.Resource, value, failed.Err, hint)
}
