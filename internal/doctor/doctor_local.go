package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/runner"
)

// localWorkers returns the workers that run on this host.
func localWorkers(workers []runner.Worker) (local []runner.Worker) {
	host, _ := os.Hostname() // workers use the same function to record their host
	for _, w := range workers {
		if !w.Dead && w.Host == host {
			local = append(local, w)
		}
	}
	return local
}

// oldPrograms reports workers that do not run the installed program: they have another version, or the file was replaced after they had
// started.
func oldPrograms(workers []runner.Worker, report reportFunc) {
	const try = "systemctl restart runner     or stop it, and start it again"
	for _, w := range localWorkers(workers) {
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

// backup reports the age of the last backup that runner has made. It does not warn if there is none, because other programs may make the
// backups.
func (d *Doctor) backup(_ context.Context, report reportFunc) error {
	const try = "runner backup FILE"
	at := admin.Store(d.Runner).LastBackup()
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
