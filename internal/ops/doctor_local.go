package ops

import (
	"context"
	"fmt"
	"os"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/runner/admin"
)

// localWorkers returns the workers that run on this host.
func localWorkers(workers []admin.Worker) (local []admin.Worker) {
	host, _ := os.Hostname() // workers use the same function to record their host
	for _, w := range workers {
		if !w.Dead && w.Host == host {
			local = append(local, w)
		}
	}
	return local
}

// oldPrograms reports workers that run another version of runner.
func oldPrograms(workers []admin.Worker, report reportFunc) {
	for _, w := range localWorkers(workers) {
		if w.Version != db.RunnerVersion {
			report(Warn,
				fmt.Sprintf("worker %s runs version %s; this is version %s", w.Name, w.Version, db.RunnerVersion),
				"systemctl restart runner     or stop it, and start it again")
		}
	}
}

// backup reports the age of runner's last backup. It doesn't warn if there is
// none, because other programs may make the backups.
func (d *Doctor) backup(_ context.Context, report reportFunc) error {
	const try = "runner backup FILE"
	at := db.Of(d.Runner).LastBackup()
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
