package batch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/internal/crontab"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// maxScheduleFile is the maximum size of a file with schedules, in bytes.
const maxScheduleFile = 64 << 20

// ScheduleFile is a file that "schedule apply" or "schedule import" reads.
type ScheduleFile struct {
	Name      string // name of the file in messages
	Schedules []jobs.Schedule
	Notes     []string // remarks about features of a crontab that runner does not support
	Unchanged string   // last sentence of errors, which says that the command changed nothing

	text    []byte
	tab     crontab.Table // of a crontab
	prefix  string        // of the names of its schedules
	lines   []int         // for each element of Schedules, the number of its line
	refused []refusal
}

// refusal is a line of a crontab that cannot be imported.
type refusal struct {
	line    int
	err     *failure.Error // error whose message contains the number of the line
	setting bool           // whether the line sets a variable, on which the entries below it depend
}

// ReadScheduleFile reads a file, or stdin if the name is "-". The text in the parameter "unchanged" tells the user that the database is as
// before. Later errors of the ScheduleFile end with this text.
func ReadScheduleFile(name string, stdin io.Reader, unchanged string) (*ScheduleFile, error) {
	f := &ScheduleFile{Name: name, Unchanged: unchanged}
	in := stdin
	if name == "-" {
		f.Name = "stdin"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, failure.Usage("%q: %v", name, humanize.Reason(err))
		}
		defer file.Close()
		in = file
	}
	var err error
	f.text, err = io.ReadAll(io.LimitReader(in, maxScheduleFile+1))
	switch {
	case err != nil:
		return nil, failure.Usage("%q: %v", f.Name, humanize.Reason(err))
	case len(f.text) > maxScheduleFile:
		return nil, failure.Usage("%q is too large; at most %s", f.Name, humanize.ExactSize(maxScheduleFile))
	}
	return f, nil
}

// ReadLines parses the file as JSON Lines.
func (f *ScheduleFile) ReadLines(getenv func(string) string) error {
	caller, err := invocation.Current(getenv)
	if err != nil {
		return err
	}
	zone, zoneErr := invocation.Zone(getenv)
	for l := range jsonLines(bytes.NewReader(f.text)) {
		s, err := jobs.Schedule{}, l.err
		if err == nil {
			s, err = ReadSchedule(l.text, caller)
		}
		if err == nil && s.Zone == "" {
			s.Zone, err = zone, zoneErr
		}
		if err != nil {
			return f.lineError(l.n, err).Failure(f.Unchanged)
		}
		f.Schedules, f.lines = append(f.Schedules, s), append(f.lines, l.n)
	}
	return nil
}

// ReadCrontab parses the file as a crontab. The names of the schedules begin with prefix. If system is set, the file is a system crontab,
// whose entries name a user. Only root may import the entries of other users. Refused returns the lines that cannot be imported.
func (f *ScheduleFile) ReadCrontab(getenv func(string) string, prefix string, system bool) error {
	home := getenv("HOME")
	if home == "" {
		return failure.Usage("HOME is not set, so the working directory of the commands is unknown").
			Hint("HOME=/home/ann runner schedule import ...")
	}
	zone, err := invocation.Zone(getenv)
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil && system {
		return failure.Internal("the name of this user is unknown", err)
	}
	o := crontab.Options{Zone: zone, Home: home, Prefix: prefix, System: system, HomeOf: homeOf}
	if err == nil {
		o.User, o.Root = me.Username, me.Uid == "0"
	}
	o.Host, _ = os.Hostname() // without a name, random times don't differ between machines
	o.HasProgram = func(name, path string) bool {
		_, missing := invocation.Invocation{Dir: home, Path: cmp.Or(path, getenv("PATH"))}.Find(name, home)
		return missing == nil
	}
	f.tab = crontab.Parse(string(f.text), o)
	for _, bad := range f.tab.Refused {
		f.refused = append(f.refused, refusal{bad.Line, f.lineError(bad.Line, bad.Err).Failure(), bad.Setting})
	}
	f.prefix, f.Schedules, f.lines = prefix, f.tab.Schedules, f.tab.Lines
	for _, note := range f.tab.Notes {
		lines := make([]string, len(note.Lines))
		for i, line := range note.Lines {
			lines[i] = strconv.Itoa(line)
		}
		f.Notes = append(f.Notes, fmt.Sprintf("%s:%s: %s", f.Name, strings.Join(lines, ","), note.Text))
	}
	return nil
}

// PickTimes replaces random ranges in the time fields of a schedule, such as
// 0~30 or ~, by one value for this machine.
func PickTimes(fields []string, schedule string) []string {
	host, _ := os.Hostname() // without a name, the times don't differ between machines
	return crontab.Pick(fields, host+" "+schedule)
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

// KeepNames gives the entries of the crontab the names that they have in the
// database. If update is set, it notes schedules whose lines are gone.
func (f *ScheduleFile) KeepNames(have []jobs.Schedule, update bool) {
	f.tab.Rename(have)
	if gone := f.tab.Gone(have, f.prefix); update && len(gone) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s has no line for %s, which may be of another crontab; if the line is gone: "+
			"runner schedule remove %[2]s", f.Name, strings.Join(gone, " ")))
	}
}

// Refuse removes the schedules that caused an error of ApplySchedules, and stores their errors for Refused. It returns false if no schedule
// caused the error.
func (f *ScheduleFile) Refuse(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // ApplySchedules joins errors and does not wrap the result
	if !ok {
		return false
	}
	refused := map[int]bool{}
	for _, err := range joined.Unwrap() {
		bad, ok := errors.AsType[*runner.SpecError](err)
		if !ok {
			return false
		}
		refused[bad.Index] = true
		f.refuse(bad)
	}
	schedules, lines := f.Schedules[:0], f.lines[:0]
	for i, s := range f.Schedules {
		if !refused[i] {
			schedules, lines = append(schedules, s), append(lines, f.lines[i])
		}
	}
	f.Schedules, f.lines = schedules, lines
	return true
}

// refuse stores the error of one schedule.
func (f *ScheduleFile) refuse(bad *runner.SpecError) {
	i := bad.Index
	one := f.lineError(f.lines[i], bad.Err)
	if errors.Is(bad.Err, jobs.ErrConflict) {
		one.Err = failure.Explain(bad.Err)
	}
	e := one.Failure()
	if errors.Is(bad.Err, jobs.ErrConflict) {
		e.Hint("--update, or --prefix")
	}
	f.refused = append(f.refused, refusal{line: f.lines[i], err: e})
}

// MaySkip reports whether an import may leave out the lines that cannot be imported. It may not if one of them sets an environment
// variable, because the entries below such a line depend on it.
func (f *ScheduleFile) MaySkip() bool {
	return !slices.ContainsFunc(f.refused, func(r refusal) bool { return r.setting })
}

// Refused returns an error that lists all lines that cannot be imported, or nil if there are none. The parameter "skipped" says whether the
// import leaves them out and goes on.
func (f *ScheduleFile) Refused(skipped bool) error {
	if len(f.refused) == 0 {
		return nil
	}
	slices.SortStableFunc(f.refused, func(a, b refusal) int { return cmp.Compare(a.line, b.line) })
	first := *f.refused[0].err
	e := &first
	if n := len(f.refused); n > 1 {
		e = &failure.Error{Code: "usage", Exit: 1, What: fmt.Sprintf("%s: %s cannot be imported", f.Name, humanize.Plural(n, "line"))}
		for _, r := range f.refused {
			e.Because(r.err.Error())
		}
		if f.MaySkip() && !skipped {
			e.Hint("--skip-refused imports the other lines")
		}
	}
	if !skipped {
		e.Why = append(slices.Clone(e.Why), f.Unchanged)
	}
	return e
}

// Explain adds a line number to an error of ApplySchedules: the line of the schedule that caused the error.
func (f *ScheduleFile) Explain(err error) error {
	bad, ok := errors.AsType[*runner.SpecError](err)
	if !ok {
		return err
	}
	return f.lineError(f.lines[bad.Index], bad.Err).Failure(f.Unchanged)
}

func (f *ScheduleFile) lineError(line int, err error) *LineError {
	return &LineError{File: f.Name, Line: line, Err: err}
}
