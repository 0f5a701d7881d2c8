package cli

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

// database says which file a command works on, and how it is opened.
type database struct {
	Path        string // absolute; or the address of a server
	from        string // what named it: "--db", "$RUNNER_DB", "$STATE_DIRECTORY"; empty: nothing, it is the standard one
	standard    bool   // its directory is ours to create; that of a path somebody named is not
	busyTimeout time.Duration
	unsafeFS    bool
}

// database reads the global options that say which database. With -v it says which one that is.
func (a *App) database(c *Context) (database, error) {
	d, err := a.FindDatabase(Get[string](c, "db"))
	if err != nil {
		return d, err
	}
	d.busyTimeout, d.unsafeFS = Get[time.Duration](c, "busy-timeout"), Get[bool](c, "unsafe-fs")
	a.Printer.Detail("database: %s", d.describe())
	return d, nil
}

// Open opens the database that the command line names. Only enqueue, work and what adds schedules create it; what they know
// better than the options of every command is in more.
func (a *App) Open(c *Context, create bool, more runner.Options) (*runner.Runner, error) {
	d, err := a.database(c)
	if err != nil {
		return nil, err
	}
	more.MustExist, more.BusyTimeout, more.UnsafeFS, more.Engine = !create, d.busyTimeout, d.unsafeFS, postgres.Engine()
	if create && d.standard {
		if err := os.MkdirAll(filepath.Dir(d.Path), 0o700); err != nil {
			return nil, &jobs.Error{Kind: jobs.ErrPermission, What: "cannot create " + filepath.Dir(d.Path), Err: err}
		}
	}
	r, err := runner.Open(c.Context, d.Path, more)
	if err == nil && admin.Created(r) {
		a.Printer.Note("created %s", r.Path())
	}
	return r, err
}

// Action is the Action of a command: it reads the options, opens the database, which it creates if it may, and runs the command.
func Action[O any](a *App, create bool, read func(*Context, *App) (O, error),
	run func(context.Context, *runner.Runner, *term.Printer, O) error) urfave.ActionFunc {
	return func(c *Context) error {
		o, err := read(c, a)
		if err != nil {
			return err
		}
		r, err := a.Open(c, create, runner.Options{})
		if err != nil {
			return err
		}
		defer r.Close()
		return run(c.Context, r, a.Printer, o)
	}
}

// describe is the path and, unless it is the standard one, who named it.
func (d database) describe() string {
	if d.from == "" {
		return d.shown()
	}
	return d.shown() + "   (from " + d.from + ")"
}

// FindDatabase is locateDatabase on this machine.
func (a *App) FindDatabase(flag string) (database, error) {
	d, err := locateDatabase(flag, a.Getenv, os.Getuid(), runtime.GOOS, directoryOwner)
	if err != nil || filepath.IsAbs(d.Path) || admin.OnServer(d.Path) {
		return d, err
	}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return d, &failure.Error{Code: "no_database", Exit: 1, What: "no working directory for " + d.Path, Cause: err}
	}
	d.Path = path
	return d, nil
}

// userDatabase is what findDatabase finds where there is no directory of the machine's own.
func (a *App) userDatabase() (database, error) {
	nowhere := func(string) (int, bool) { return 0, false }
	return locateDatabase("", a.Getenv, os.Getuid(), runtime.GOOS, nowhere)
}

// locateDatabase finds the database by five rules; the first that matches wins. owner returns the uid of a
// directory, and whether there is such a directory. An empty variable is an unset one. Never the working directory: a
// database would appear wherever somebody stands.
func locateDatabase(flag string, getenv func(string) string, uid int, goos string, owner func(string) (int, bool)) (database, error) {
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
	case goos != "windows" && goos != "darwin" && mayUse(system, uid, owner):
		d.Path = system + "/runner.db"
	case goos == "windows" && getenv("LocalAppData") != "":
		d.Path = getenv("LocalAppData") + `\runner\runner.db`
	case goos == "windows":
		return d, noHome("LocalAppData")
	case goos == "darwin" && home != "":
		d.Path = home + "/Library/Application Support/runner/runner.db"
	case goos != "darwin" && strings.HasPrefix(getenv("XDG_STATE_HOME"), "/"): // the standard says: ignore relative ones
		d.Path = strings.TrimRight(getenv("XDG_STATE_HOME"), "/") + "/runner/runner.db"
	case home != "":
		d.Path = strings.TrimRight(home, "/") + "/.local/state/runner/runner.db"
	default:
		return d, noHome("HOME")
	}
	if flag != "" && admin.OnServer(flag) && hasPassword(flag) {
		return d, failure.Usage("the address of the server holds a password").Because("everyone on this machine can read the command " +
			"lines of others").
			Hint("RUNNER_DB, PGPASSWORD or ~/.pgpass")
	}
	return d, nil
}

// password matches what stands before and behind the password of an address.
var password = regexp.MustCompile(`^([a-z]+://[^/?#@:]*):[^/?#]*@|([?&](?:ssl)?password=)[^&#]*`)

func hasPassword(address string) bool { return password.MatchString(address) }

// shown is the database for people: nobody is shown a password.
func (d database) shown() string {
	if !admin.OnServer(d.Path) {
		return d.Path
	}
	return password.ReplaceAllStringFunc(d.Path, func(part string) string {
		m := password.FindStringSubmatch(part)
		if m[2] != "" {
			return m[2] + "xxxxx"
		}
		return m[1] + "@"
	})
}

// mayUse says whether the machine's own directory is this user's database: it exists, and they are root or own it.
func mayUse(dir string, uid int, owner func(string) (int, bool)) bool {
	o, ok := owner(dir)
	return ok && (uid == 0 || uid == o)
}

func noHome(variable string) *failure.Error {
	return (&failure.Error{Code: "no_database", Exit: 1, What: "which database? " + variable + " is not set, nor is RUNNER_DB"}).
		Hint("RUNNER_DB=/path/to/runner.db, or --db PATH")
}

// directoryOwner asks the file system. The uid is read by reflection because the type that has it differs per system, and
// build tags belong into internal/supervisor and db.
func directoryOwner(dir string) (uid int, ok bool) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return 0, false
	}
	if sys := reflect.Indirect(reflect.ValueOf(info.Sys())); sys.Kind() == reflect.Struct {
		if field := sys.FieldByName("Uid"); field.IsValid() && field.CanUint() {
			return int(field.Uint()), true
		}
	}
	return -1, true
}

// OtherDatabases lists the databases that exist in the places where runner looks by itself, other than the one at path.
func (a *App) OtherDatabases(path string) []string {
	var found []string
	hidden := map[string]bool{}
	without := *a
	without.Getenv = func(name string) string {
		if hidden[name] {
			return ""
		}
		return a.Getenv(name)
	}
	path = realPath(path)
	look := func(d database, err error) {
		if real := realPath(d.Path); err == nil && real != path && !slices.Contains(found, real) {
			if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
				found = append(found, real)
			}
		}
	}
	for _, name := range []string{"", "RUNNER_DB", "STATE_DIRECTORY"} {
		hidden[name] = true
		look(without.FindDatabase(""))
	}
	look(without.userDatabase()) // behind the machine's own directory
	return found
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
