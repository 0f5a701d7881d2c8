package batch

import (
	"bytes"
	"errors"
	"io"
	"os"

	"example.com/runner/internal/crontab"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// maxScheduleFile is the largest size of a file of schedules, in bytes.
const maxScheduleFile = 64 << 20

// ScheduleFile is the file of schedule apply or schedule import.
type ScheduleFile struct {
	Name      string // name for messages
	Schedules []jobs.Schedule
	Notes     []string // remarks about lines that have no equivalent
	Unchanged string   // sentence for errors: the database is unchanged

	text  []byte
	lines []int // line number of each schedule
}

// ReadScheduleFile reads a file, or stdin if the name is "-". unchanged says in errors that the database is unchanged.
func ReadScheduleFile(name string, stdin io.Reader, unchanged string) (*ScheduleFile, error) {
	f := &ScheduleFile{Name: name, Unchanged: unchanged}
	in := stdin
	if name == "-" {
		f.Name = "stdin"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, failure.Usage("%q: %v", name, invocation.ReasonOf(err))
		}
		defer file.Close()
		in = file
	}
	var err error
	f.text, err = io.ReadAll(io.LimitReader(in, maxScheduleFile+1))
	switch {
	case err != nil:
		return nil, failure.Usage("%q: %v", f.Name, invocation.ReasonOf(err))
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
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(f.text, []byte("\ufeff"))) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		s, err := ReadSchedule(line, caller)
		if err == nil && s.Zone == "" {
			s.Zone, err = zone, zoneErr
		}
		if err != nil {
			return f.lineError(n, err).Failure(f.Unchanged)
		}
		f.Schedules, f.lines = append(f.Schedules, s), append(f.lines, n)
	}
	return nil
}

// ReadCrontab parses the file as a crontab. The names of the schedules begin with prefix.
func (f *ScheduleFile) ReadCrontab(getenv func(string) string, prefix string) error {
	home := getenv("HOME")
	if home == "" {
		return failure.Usage("HOME is not set, so the working directory of the commands is unknown").
			Hint("HOME=/home/ann runner schedule import ...")
	}
	zone, err := invocation.Zone(getenv)
	if err != nil {
		return err
	}
	tab, err := crontab.Parse(string(f.text), crontab.Options{Zone: zone, Home: home, Prefix: prefix})
	if bad, ok := errors.AsType[*crontab.LineError](err); ok {
		return f.lineError(bad.Line, bad.Err).Failure(f.Unchanged)
	}
	if err != nil {
		return err
	}
	f.Schedules, f.lines = tab.Schedules, tab.Lines
	if tab.MailLine > 0 {
		f.Notes = append(f.Notes, f.lineError(tab.MailLine, errMailTo).Error())
	}
	return nil
}

var errMailTo = errors.New("MAILTO is ignored: runner sends no mail; to report failures: runner work --on-failure CMD")

// Explain names the line of the file in an error of ApplySchedules.
func (f *ScheduleFile) Explain(err error) error {
	bad, ok := errors.AsType[*runner.SpecError](err)
	if !ok {
		return err
	}
	if !errors.Is(bad.Err, jobs.ErrConflict) {
		return f.lineError(f.lines[bad.Index], bad.Err).Failure(f.Unchanged)
	}
	e := f.lineError(f.lines[bad.Index], failure.Explain(bad.Err)).Failure(f.Unchanged)
	return e.Hint("runner schedule remove %s, or --prefix", f.Schedules[bad.Index].Name)
}

func (f *ScheduleFile) lineError(line int, err error) *LineError {
	return &LineError{File: f.Name, Line: line, Err: err}
}
