package main

import (
	"cmp"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
)

// The templates of the systemd units. The packages and make install use the
// same files.
var (
	//go:embed contrib/systemd/runner.service
	machineUnit []byte
	//go:embed contrib/systemd/user/runner.service
	userUnit []byte
)

func serviceCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Maintain", Usage: "run the worker as a service of systemd",
		UsageText: "runner service install [--user] [--name NAME] [--run-as USER] [--db PATH]\n" +
			"runner service uninstall [--user] [--name NAME]",
		Subcommands: []*cli.Command{serviceInstallCommand(a), serviceUninstallCommand(a)},
		Description: `EXAMPLES
  sudo runner service install
  runner service install --user
  sudo runner service uninstall

A service starts the worker when the machine starts, and restarts it after a
failure. Without --user, the service belongs to the machine, and root must
install it. These commands show the state and the log of the service:

  systemctl status runner
  journalctl -u runner -f

For a service of --user, use systemctl --user status runner and
journalctl --user -u runner.

EXIT STATUS
  0   done
  1   systemd does not run here, or systemd reported an error
  2   invalid usage`,
	}
}

func serviceInstallCommand(a *cli.App) *cli.Command {
	var u ops.Unit
	return &cli.Command{
		Name: "install", Usage: "write and enable the unit, and start the worker",
		UsageText: "runner service install [--user] [--name NAME] [--run-as USER] [--db PATH]",
		Flags: []cli.Flag{
			cli.Bool(&u.PerUser, "user", "install a service of your own user, without root"),
			unitNameOption(&u),
			cli.Value(&u.RunAs, "run-as", "USER", "without --user: user that runs the service and its tasks",
				parseUnitName).Default("runner, which is created"),
		},
		Before: cli.NoArgs(""),
		Description: `EXAMPLES
  sudo runner service install
  runner service install --user
  sudo runner service install --name reports --db /srv/reports/runner.db \
    --run-as ann

install writes and enables a unit that runs this program, and starts the worker.
The text of the unit comes from contrib/systemd. systemd prefers this unit to
the unit of a package. If you run install again, install changes only settings
that differ, and restarts the worker only if the unit has changed.

The service uses the database of --db or $RUNNER_DB. If neither is set, the
service uses one of these databases:
  ~/.local/state/runner/runner.db  with --user
  /var/lib/NAME/runner.db          with --run-as for a user other than runner
  /var/lib/runner/runner.db        otherwise

Set the options of the worker as variables, such as RUNNER_CONCURRENCY=8, in
/etc/default/NAME, or with --user in ~/.config/NAME.env. After a change of these
variables, run systemctl restart NAME. To change the unit,
run systemctl edit NAME.

In a pipe, tabs separate the unit, its file, "changed" or "unchanged", and the
database.

EXIT STATUS
  0   the service is enabled and runs
  1   systemd does not run here, or systemd reported an error
  2   invalid usage`,
		Action: func(c *cli.Context) error { return installService(c, a, u) },
	}
}

func serviceUninstallCommand(a *cli.App) *cli.Command {
	var u ops.Unit
	return &cli.Command{
		Name: "uninstall", Usage: "stop the worker, disable and remove its unit",
		UsageText: "runner service uninstall [--user] [--name NAME]",
		Flags: []cli.Flag{
			cli.Bool(&u.PerUser, "user", "uninstall the service of your own user"),
			unitNameOption(&u),
		},
		Before: cli.NoArgs(""),
		Description: `EXAMPLES
  sudo runner service uninstall
  runner service uninstall --user

uninstall stops the worker and disables the unit. Running tasks get the --grace
time of the worker to end. uninstall removes the unit file that install wrote.
The database, the settings and the user stay.

uninstall concerns only a unit that install wrote. It leaves the unit of a
package alone: remove that one with the package.

EXIT STATUS
  0   no unit that install wrote exists any more
  1   systemd does not run here, or systemd reported an error
  2   invalid usage`,
		Action: func(c *cli.Context) error { return uninstallService(c, a, u) },
	}
}

func unitNameOption(u *ops.Unit) *cli.Option {
	u.Name = "runner"
	return cli.Value(&u.Name, "name", "NAME", "name of the unit", parseUnitName).Default("runner")
}

var unitName = humanize.Lazy(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// parseUnitName checks the name of a systemd unit or of a user.
func parseUnitName(text string) (string, error) {
	if !unitName().MatchString(text) || len(text) > 100 {
		return "", errors.New("is no name: letters, digits, dots, underscores and hyphens")
	}
	return text, nil
}

// checkUnit completes the unit that the options select.
func checkUnit(c *cli.Context, a *cli.App, u *ops.Unit) error {
	if !u.PerUser && runtime.GOOS == "linux" && os.Geteuid() != 0 {
		return (&ui.Error{Code: "permission", Exit: 1, What: "only root changes services of the machine"}).
			Hint("sudo runner service %s, or runner service %[1]s --user", c.Command.Name)
	}

	config := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(a.Getenv("HOME"), ".config")
	}

	u.Template = machineUnit
	if u.PerUser {
		u.Template = userUnit
	}

	u.Dir = ops.Directory(u.PerUser, config)
	return nil
}

func installService(c *cli.Context, a *cli.App, u ops.Unit) error {
	if err := checkUnit(c, a, &u); err != nil {
		return err
	}
	if u.PerUser && c.IsSet("run-as") {
		return ui.Usage("--run-as is for a service of the machine: it excludes --user")
	}
	if !u.PerUser {
		u.RunAs = cmp.Or(u.RunAs, "runner")
	}

	d, err := a.Database()
	if err != nil {
		return err
	}

	database := d.Path
	switch {
	case d.HasPassword():
		return ui.Usage("the address of the server holds a password").Because("everyone on this machine can read a unit").
			Hint("a file with RUNNER_DB=..., mode 600: %s", u.SettingsFile())
	case d.Named():
		u.Database = d.Path
	case !u.PerUser:
		database = "/var/lib/" + u.StateDirectory() + "/runner.db"
	}

	if u.Program, err = ops.OwnProgram(); err != nil {
		return err
	}

	result, err := u.Install(c.Context)
	if err != nil {
		return u.Explain(c.Context, "install", err)
	}

	unit, changed := u.Name+".service", map[bool]string{true: "changed", false: "unchanged"}[result.Changed]
	return a.Printer.Answer(ui.Service(unit, result.File, result.Changed, database), serviceText(u, result, database), unit,
		result.File, changed, database)
}

// serviceText returns the result of the installation for people, with commands
// that are useful next.
func serviceText(u ops.Unit, result ops.Result, database string) string {
	scope, done := "", "unchanged"
	if u.PerUser {
		scope = " --user"
	}
	if result.Changed {
		done = "written"
	}

	text := "unit       " + humanize.Safe(result.File) + ", " + done + "\n" +
		"database   " + humanize.Safe(database) + "\n" +
		"service    " + u.Name + ".service is enabled and runs\n" +
		"settings   " + u.SettingsFile() + ", such as RUNNER_CONCURRENCY=8\n" +
		"state      systemctl" + scope + " status " + u.Name + "\n" +
		"log        journalctl" + scope + " -u " + u.Name + " -f\n"
	if result.NewUser != "" {
		text = "user       " + result.NewUser + ", created\n" + text
	}
	if u.PerUser {
		text += "The service ends when you log out. To keep it: loginctl enable-linger\n"
	}

	return text
}

func uninstallService(c *cli.Context, a *cli.App, u ops.Unit) error {
	if err := checkUnit(c, a, &u); err != nil {
		return err
	}

	result, err := u.Uninstall(c.Context)
	if err != nil {
		return u.Explain(c.Context, "uninstall", err)
	}

	text := humanize.Safe(result.File) + " does not exist\n"
	if result.Changed {
		text = "removed " + humanize.Safe(result.File) + "; the database stays\n"
	}
	return a.Printer.Answer(ui.RemovedService(u.Name+".service", result.File, result.Changed), text)
}
