package cli

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/postgres"
)

// database is the database that a command uses.
type database struct {
	Path     string // absolute path, or the address of a server
	from     string // what named the database: "--db", "$RUNNER_DB" or "$STATE_DIRECTORY"; empty for the standard path
	service  string // database of this machine's service, if it's another one and the user named none
	standard bool   // whether Open may create the directory of the database; false if the user chose the path
}

// Database returns the database that the command line or the environment names.
func (a *App) Database() (database, error) {
	if a.found == nil {
		d, err := a.FindDatabase(a.db)
		if err != nil {
			return d, err
		}
		a.found = &d
	}
	return *a.found, nil
}

// Open opens the database that the command line names. Only runner enqueue,
// runner run, runner work and the commands that add schedules create a missing
// one. Open adds the options that all commands share to more.
func (a *App) Open(c *Context, create bool, more runner.Options) (*runner.Runner, error) {
	d, err := a.Database()
	if err != nil {
		return nil, err
	}

	a.Printer.Detail("database: %s", d.describe())
	if create {
		if err := d.makeDir(); err != nil {
			return nil, err
		}
	}

	more.MustExist, more.Engine = !create, postgres.Engine()
	more.BusyTimeout, more.UnsafeFS = a.BusyTimeout, a.UnsafeFS
	r, err := runner.Open(c.Context, d.Path, more)
	if err != nil {
		return nil, err
	}

	store := db.Of(r)
	if store.Created() {
		a.Printer.Note("created %s", admin.Path(r))
	}
	if from := store.UpgradedFrom(); from > 0 {
		a.Printer.Say("upgraded %s from schema %d to %d; an older runner cannot open it any more", admin.Path(r), from,
			db.SchemaVersion())
	}

	return r, nil
}

// PathFor returns the path of the database that the command line names, and
// makes its directory as Open does, but opens nothing.
func (a *App) PathFor() (string, error) {
	d, err := a.Database()
	if err != nil {
		return "", err
	}
	a.Printer.Detail("database: %s", d.describe())
	return d.Path, d.makeDir()
}

// makeDir creates the directory of a database at a standard path.
func (d database) makeDir() error {
	if !d.standard {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o700); err != nil {
		return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot create " + filepath.Dir(d.Path), Err: err}
	}
	return nil
}

// describe returns the path or address without the password, and where it comes
// from unless it is the standard path.
func (d database) describe() string {
	text := db.ParseAddress(d.Path).String()
	if d.from != "" {
		text += "   (from " + d.from + ")"
	}
	return text
}

// FindDatabase finds the database for this user and environment; see
// locateDatabase. flag is the value of --db. It makes a path absolute.
func (a *App) FindDatabase(flag string) (database, error) {
	d, err := locateDatabase(flag, a.Getenv, os.Getuid(), runtime.GOOS, directoryOwner)
	if err != nil {
		return d, err
	}

	path, err := db.ParseAddress(d.Path).Absolute()
	if _, ok := errors.AsType[*jobs.Error](err); ok {
		return database{}, err
	} else if err != nil {
		return d, &ui.Error{Code: "no_database", Exit: 1, What: "no working directory for " + d.Path, Cause: err}
	}

	d.Path = path
	return d, nil
}

// locateDatabase finds the path of the database. The first of these that
// applies wins: --db, $RUNNER_DB, $STATE_DIRECTORY, the system directory, the
// user's home. owner returns the uid of a directory's owner, and whether the
// directory exists. An empty variable counts as unset. The working directory
// doesn't count: commands in different directories would use different
// databases.
func locateDatabase(flag string, getenv func(string) string, uid int, goos string,
	owner func(string) (int, bool)) (database, error) {
	const system = "/var/lib/runner"
	home := getenv("HOME")
	d := database{standard: true}
	switch {
	case flag != "":
		d = database{Path: flag, from: "--db"}
	case getenv("RUNNER_DB") != "":
		d = database{Path: getenv("RUNNER_DB"), from: "$RUNNER_DB"}
	case getenv("STATE_DIRECTORY") != "":
		first, _, _ := strings.Cut(getenv("STATE_DIRECTORY"), ":")
		d.Path, d.from = first+"/runner.db", "$STATE_DIRECTORY"
	case goos != "windows" && goos != "darwin" && ownsDirectory(system, uid, owner):
		d.Path = system + "/runner.db"
	case goos == "windows" && getenv("LocalAppData") != "":
		d.Path = getenv("LocalAppData") + `\runner\runner.db`
	case goos == "windows":
		return d, noDatabasePath("LocalAppData")
	case goos == "darwin" && home != "":
		d.Path = home + "/Library/Application Support/runner/runner.db"
	case goos != "darwin" && strings.HasPrefix(getenv("XDG_STATE_HOME"), "/"): // the XDG standard says to ignore relative paths
		d.Path = strings.TrimRight(getenv("XDG_STATE_HOME"), "/") + "/runner/runner.db"
	case home != "":
		d.Path = strings.TrimRight(home, "/") + "/.local/state/runner/runner.db"
	default:
		return d, noDatabasePath("HOME")
	}

	if _, exists := owner(system); exists && d.from == "" && d.Path != system+"/runner.db" && goos != "windows" && goos != "darwin" {
		d.service = system + "/runner.db"
	}
	if flag != "" && d.HasPassword() {
		return d, ui.Usage("the address of the server holds a password").
			Because("every user of this machine can read the command lines of others").
			Hint("RUNNER_DB, PGPASSWORD or ~/.pgpass")
	}

	return d, nil
}

// Named reports whether an option or a variable named the database. Otherwise
// it is at a standard path.
func (d database) Named() bool { return d.from != "" }

// OtherService returns the database of this machine's service, if this user's
// commands use another one by default. It's empty if the user named a database.
func (a *App) OtherService() string {
	d, _ := a.Database() // opening the database has reported an error
	return d.service
}

// HasPassword reports whether the address of the database contains a password.
func (d database) HasPassword() bool {
	return db.ParseAddress(d.Path).HasPassword()
}

// ownsDirectory reports whether dir exists and belongs to this user. To root
// belong all.
func ownsDirectory(dir string, uid int, owner func(string) (int, bool)) bool {
	o, ok := owner(dir)
	return ok && (uid == 0 || uid == o)
}

func noDatabasePath(variable string) *ui.Error {
	return (&ui.Error{Code: "no_database", Exit: 1, What: "no path for the database: neither " + variable + " nor RUNNER_DB is set"}).
		Hint("RUNNER_DB=/path/to/runner.db, or --db PATH")
}

// directoryOwner returns the uid of a directory's owner and whether the
// directory exists. The uid is -1 if the operating system doesn't report it.
func directoryOwner(dir string) (uid int, ok bool) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return 0, false
	}
	if uid, ok = db.FileOwner(dir); !ok {
		uid = -1
	}
	return uid, true
}

// SharedByHosts reports whether several hosts may use the database.
func (a *App) SharedByHosts() bool {
	d, err := a.Database()
	return err == nil && !db.ParseAddress(d.Path).LocalFile()
}

// RequireSafeDatabase returns an error if other users may write the database.
// Call it before the database is opened or created.
func (a *App) RequireSafeDatabase(insecurePerms bool) error {
	d, err := a.Database()
	if err != nil || insecurePerms {
		return err
	}
	return db.Insecure(d.Path, os.Geteuid())
}
