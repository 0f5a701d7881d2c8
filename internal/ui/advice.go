package ui

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// Advice returns what the command line adds to an error: why explains it, line
// by line, and try is a command or value to type.
func Advice(e *jobs.Error) (why []string, try string) {
	lines := slices.Clone(advices[e.Code])
	if lines == nil {
		return nil, e.Hint
	}
	host, _ := os.Hostname()
	fill := strings.NewReplacer("SUBJECT", e.Subject, "HINT", e.Hint, "HOST", cmp.Or(host, "HOST"))
	for i, line := range lines {
		lines[i] = fill.Replace(line)
	}

	return lines[1:], lines[0]
}

// advices has the advice for error codes: what to try, and lines that explain
// the error. SUBJECT and HINT stand for those of the error, and HOST for the
// name of this host.
var advices = map[string][]string{
	errcode.BackupDirectory:   {"runner backup SUBJECT/runner.db"},
	errcode.BackupExists:      {"another name, or --force to replace it"},
	errcode.DanglingSymlink:   {"--db SUBJECT"},
	errcode.EmptyFile:         {"--db PATH, or RUNNER_DB", "runner enqueue and runner work create a database in it"},
	errcode.NoDatabase:        {"--db PATH, or RUNNER_DB", "runner enqueue and runner work create it"},
	errcode.LockTimeout:       {"HINT", "exit status 75 means it is safe to try again"},
	errcode.ExposedDatabase:   {"HINT      or allow it: --insecure-perms"},
	errcode.HardLinked:        {"remove the other hard links, or --db another file; after a stopped restore: runner restore FILE"},
	errcode.IsDirectory:       {"--db SUBJECT/runner.db"},
	errcode.MountPoint:        {"mount the directory of the database, or --db another file"},
	errcode.Moved:             {"--db, or RUNNER_DB, with the database it was moved to"},
	errcode.MoveIncomplete:    {"the same runner move again"},
	errcode.NetworkFilesystem: {"--db on a local disk, or --unsafe-fs to allow it"},
	errcode.NewerSchema:       {"upgrade this binary, or --db another file"},
	errcode.NewerServer:       {"upgrade this binary, or --db another database"},
	errcode.NoPath:            {"--db PATH"},
	errcode.NoTables:          {"runner enqueue or runner work, which create them"},
	errcode.NoTask:            {"runner list"},
	errcode.NotRunner:         {"--db another file"},
	errcode.NoWriteAheadLog:   {"--db on a local disk"},
	errcode.TaskRuns:          {"runner pause --all, then runner work, which takes over tasks of dead workers"},
	errcode.TokenDirectory:    {"HINT, or --token-file in a directory of your own"},
	errcode.TokenOwner:        {"HINT; or --token-file with a file of your own"},
	errcode.UniqueKeyHolder:   {"runner cancel SUBJECT"},

	errcode.NoCursor:        {"runner status"},
	errcode.NoLimit:         {"runner limit list"},
	errcode.NoSchedule:      {"runner schedule list"},
	errcode.NoTickFunction:  {"run it from the program that calls OnTick"},
	errcode.ScheduleDiffers: {"--replace"},

	errcode.ListenAddress: {"--listen 127.0.0.1:8484, or --listen unix:PATH"},
	errcode.PlainText: {
		"--insecure, to allow it",
		"from another machine: ssh -L 8484:127.0.0.1:8484 HOST",
		"for several users: --listen unix:/run/runner/ui.sock behind a proxy with TLS",
	},
	errcode.ListenFailed: {"--listen 127.0.0.1:0, for any free port"},
	errcode.PublicURL:    {"--public-url https://runner.example.com"},
	errcode.TokenMissing: {"--listen unix:/run/runner/ui.sock, whose file mode limits access"},
}
