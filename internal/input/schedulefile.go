package input

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// maxScheduleFile is the maximum size of a file with schedules, in bytes.
const maxScheduleFile = 64 << 20

// ScheduleFile is a file that "schedule apply" or "schedule import" reads.
type ScheduleFile struct {
	Name      string // name of the file in messages
	Schedules []jobs.Schedule
	Unchanged string // last sentence of errors, which says that the command changed nothing

	text  []byte
	lines []int        // for each element of Schedules, the number of its line
	bad   []*LineError // lines that can't be read
}

// ReadScheduleFile reads a file, or stdin for the name -. Errors in it will end
// with the text unchanged, such as "nothing was imported".
func ReadScheduleFile(name string, stdin io.Reader, unchanged string) (*ScheduleFile, error) {
	text, err := ops.ReadSource("", name, maxScheduleFile, stdin)
	if name == "-" {
		name = "stdin"
	}
	return &ScheduleFile{Name: name, Unchanged: unchanged, text: text}, err
}

// ReadLines parses the file as JSON Lines.
func (f *ScheduleFile) ReadLines(getenv func(string) string) error {
	caller, err := ops.Current(getenv)
	if err != nil {
		return err
	}

	zone, zoneErr := ops.Zone(getenv)
	for l := range jsonLines(bytes.NewReader(f.text)) {
		s, err := jobs.Schedule{}, l.err
		if err == nil {
			s, err = ReadSchedule(l.text, caller)
		}
		if err == nil && s.Zone == "" {
			s.Zone, err = zone, zoneErr
		}
		f.add(l.n, s, err)
	}

	return nil
}

// add adds the schedule of a line, or its error.
func (f *ScheduleFile) add(line int, s jobs.Schedule, err error) {
	if err != nil {
		f.bad = append(f.bad, f.lineError(line, err))
		return
	}
	f.Schedules, f.lines = append(f.Schedules, s), append(f.lines, line)
}

// ReadCrontab parses the file as a crontab. The names of the schedules begin
// with prefix. The entries of a system crontab name a user; only root may
// import those of others.
func (f *ScheduleFile) ReadCrontab(getenv func(string) string, prefix string, system bool) error {
	home := getenv("HOME")
	if home == "" {
		return ui.Usage("HOME is not set, so the working directory of the commands is unknown").
			Hint("HOME=/home/ann runner schedule import ...")
	}

	zone, err := ops.Zone(getenv)
	if err != nil {
		return err
	}

	me, err := user.Current()
	if err != nil && system {
		return ui.Internal("the name of this user is unknown", err)
	}

	c := Crontab{Zone: zone, Home: home, Prefix: prefix, System: system, HomeOf: homeOf}
	if err == nil {
		c.User, c.Root = me.Username, me.Uid == "0"
	}

	for _, e := range c.Parse(string(f.text)) {
		f.add(e.Line, e.Schedule, e.Err)
	}

	return nil
}

// homeOf returns the home directory of a user, or / if it doesn't exist (as the
// one of nobody).
func homeOf(name string) (home string, ok bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return "", false
	}
	if info, err := os.Stat(u.HomeDir); err != nil || !info.IsDir() {
		return "/", true
	}
	return u.HomeDir, true
}

// IsInvalid reports whether a line cannot be read.
func (f *ScheduleFile) IsInvalid() bool { return len(f.bad) > 0 }

// Failure returns an error that names all invalid lines: those that cannot be
// read, and those that err, an error of ApplySchedules, is about. It returns
// nil if all lines are valid.
func (f *ScheduleFile) Failure(err error) error {
	all := slices.Clone(f.bad)
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // ApplySchedules doesn't wrap the errors that it joins
		for _, err := range joined.Unwrap() {
			if bad, ok := errors.AsType[*runner.SpecError](err); ok {
				all = append(all, f.lineError(f.lines[bad.Index], bad.Err))
			}
		}
	}
	if len(all) == 0 {
		return err
	}

	slices.SortStableFunc(all, func(a, b *LineError) int { return cmp.Compare(a.Line, b.Line) })
	if len(all) == 1 {
		return all[0].Failure(f.Unchanged)
	}

	e := &ui.Error{Code: "usage", Exit: 1, What: fmt.Sprintf("%s: %s were refused", f.Name, humanize.Plural(len(all), "line"))}
	for _, bad := range all {
		e.Because(bad.Failure().Error())
	}

	e.Because(f.Unchanged)
	return e
}

func (f *ScheduleFile) lineError(line int, err error) *LineError {
	if errors.Is(err, jobs.ErrConflict) {
		err = ui.Explain(err).Hint("--update, or --prefix")
	}
	return &LineError{File: f.Name, Line: line, Err: err}
}
