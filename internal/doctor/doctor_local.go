package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// localWorkers returns the workers that run on this host. The result "others" is true if all running workers are on other hosts.
func localWorkers(workers []runner.Worker) (local []runner.Worker, others bool) {
	host, _ := os.Hostname() // workers use the same function to record their host
	for _, w := range workers {
		switch {
		case w.Dead:
		case w.Host == host:
			local = append(local, w)
		default:
			others = true
		}
	}
	return local, others && len(local) == 0
}

// oldPrograms reports workers that do not run the installed program: they have another version, or the file was replaced after they had
// started.
func oldPrograms(workers []runner.Worker, report reportFunc) {
	const try = "systemctl restart runner     or stop it, and start it again"
	local, _ := localWorkers(workers)
	for _, w := range local {
		// The path is empty on systems other than Linux, and for processes of other users.
		program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", w.PID))
		switch {
		case w.Version != runner.Version:
			report(Warn, fmt.Sprintf("worker %s runs version %s; this is version %s", w.Name, w.Version, runner.Version), try)
		case strings.HasSuffix(program, " (deleted)"):
			report(Warn, fmt.Sprintf("worker %s runs a program that was replaced since the worker started", w.Name), try)
		}
	}
}

// missingFiles reports schedules whose program, directory or environment file does not exist on this host. It reports nothing if all
// workers run on other hosts.
func missingFiles(schedules []jobs.Schedule, workers []runner.Worker, report reportFunc) (ok bool) {
	local, elsewhere := localWorkers(workers)
	if elsewhere {
		return true
	}
	path := workerPath(local)
	ok = true
	for _, s := range schedules {
		if missing := missingFile(&s.Spec, path); missing != "" {
			ok = false
			report(Warn, fmt.Sprintf("schedule %s cannot run: %s", s.Name, missing), "runner schedule show "+s.Name)
		}
	}
	return ok
}

// backup reports the age of the last backup that runner has made. It does not warn if there is none, because other programs may make the
// backups.
func (d *Doctor) backup(_ context.Context, report reportFunc) error {
	const try = "runner backup FILE"
	at := admin.LastBackup(d.Runner)
	switch age := d.Now.Sub(at); {
	case at.IsZero():
		report(OK, "runner has made no backup", try)
	case age > backupWarn:
		report(Warn, "the last backup by runner is "+humanize.Age(age)+" old", try)
	default:
		report(OK, "last backup "+humanize.Age(age)+" ago", "")
	}
	return nil
}

// workerPath returns the PATH of the first worker whose environment this user
// may read, and an empty text if there is none: only root may read it. Without
// workers it returns the PATH of this process.
func workerPath(workers []runner.Worker) string {
	for _, w := range workers {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", w.PID))
		if err != nil {
			continue
		}
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if path, ok := strings.CutPrefix(variable, "PATH="); ok {
				return path
			}
		}
	}
	if len(workers) > 0 {
		return ""
	}
	return os.Getenv("PATH")
}

// missingFile returns the reason why the command of a task cannot start, or an empty text if it can. The parameter "path" is the variable
// PATH of the worker; empty means unknown.
func missingFile(s *jobs.Spec, path string) string {
	argv, err := taskspec.Argv(s.Args)
	if s.Job != jobs.CommandJob || err != nil {
		return ""
	}
	if s.Cwd != "" && isMissing(s.Cwd) {
		return "directory " + s.Cwd + " not found"
	}
	if s.EnvFile != "" && isMissing(s.EnvFile) {
		return "environment file " + s.EnvFile + " not found"
	}
	if own, ok := s.Env["PATH"]; ok {
		path = own
	}
	program := argv[0]
	switch {
	case s.Path != "":
		if isMissing(s.Path) {
			return "program " + s.Path + " not found"
		}
	case filepath.IsAbs(program):
		if isMissing(program) {
			return "program " + program + " not found"
		}
	case strings.ContainsRune(program, filepath.Separator):
		if s.Cwd != "" && isMissing(filepath.Join(s.Cwd, program)) {
			return "program " + filepath.Join(s.Cwd, program) + " not found"
		}
	case path != "" && runtime.GOOS != "windows":
		// Windows also finds files with any extension in PATHEXT.
		for _, dir := range filepath.SplitList(path) {
			if !isMissing(filepath.Join(dir, program)) {
				return ""
			}
		}
		return "program " + program + " not found in the PATH of the worker"
	}
	return ""
}

// isMissing reports whether a file does not exist. It returns false if this user may not look at the file.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
