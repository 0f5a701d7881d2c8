package present

import (
	"os"
	"path/filepath"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// Advice returns what the command line adds to an error. The result "why" explains the error, line by line. The result "try" is a command
// or value that the user can type. If the command line has no advice for an error code, this result is the hint of the error.
func Advice(e *jobs.Error) (why []string, try string) {
	switch e.Code {
	case errcode.EmptyFile:
		return []string{"runner enqueue and runner work create a database in it"}, "--db PATH, or RUNNER_DB"
	case errcode.NoDatabase:
		return []string{"runner enqueue and runner work create it"}, "--db PATH, or RUNNER_DB"
	case errcode.LockTimeout:
		return []string{"exit status 75 means it is safe to try again"}, e.Hint
	case errcode.PlainText:
		host, err := os.Hostname()
		if err != nil {
			host = "HOST"
		}
		return []string{"from another machine: ssh -L 8484:127.0.0.1:8484 " + host,
			"for several users: --listen unix:/run/runner/ui.sock behind a proxy with TLS"}, "--insecure, to allow it"
	}
	if word, ok := advice[e.Code]; ok {
		return nil, word(e)
	}
	return nil, e.Hint
}

func text(try string) func(*jobs.Error) string { return func(*jobs.Error) string { return try } }

// advice maps error codes to a command or value that the user can type. This text replaces the hint of the error.
var advice = map[string]func(*jobs.Error) string{
	errcode.BackupDirectory:   func(e *jobs.Error) string { return "runner backup " + filepath.Join(e.Subject, "runner.db") },
	errcode.BackupExists:      text("another name, or --force to replace it"),
	errcode.DanglingSymlink:   func(e *jobs.Error) string { return "--db " + e.Subject },
	errcode.ExposedDatabase:   func(e *jobs.Error) string { return e.Hint + "      or allow it: --insecure-perms" },
	errcode.HardLinked:        text("remove the other hard links, or --db another file; after a stopped restore: runner restore FILE"),
	errcode.IsDirectory:       func(e *jobs.Error) string { return "--db " + filepath.Join(e.Subject, "runner.db") },
	errcode.MountPoint:        text("mount the directory of the database, or --db another file"),
	errcode.Moved:             text("--db, or RUNNER_DB, with the database it was moved to"),
	errcode.MoveIncomplete:    text("the same runner move again"),
	errcode.NetworkFilesystem: text("--db on a local disk, or --unsafe-fs to allow it"),
	errcode.NewerSchema:       text("upgrade this binary, or --db another file"),
	errcode.NewerServer:       text("upgrade this binary, or --db another database"),
	errcode.NoPath:            text("--db PATH"),
	errcode.NoTables:          text("runner enqueue or runner work, which create them"),
	errcode.NoTask:            text("runner list"),
	errcode.NotRunner:         text("--db another file"),
	errcode.NoWriteAheadLog:   text("--db on a local disk"),
	errcode.TaskRuns:          text("runner pause --all, then runner work, which takes over tasks of dead workers"),
	errcode.TokenDirectory:    func(e *jobs.Error) string { return e.Hint + ", or --token-file in a directory of your own" },
	errcode.TokenLink:         func(e *jobs.Error) string { return "--token-file with the path of the file itself; or " + e.Hint },
	errcode.TokenOwner:        func(e *jobs.Error) string { return e.Hint + "; or --token-file with a file of your own" },
	errcode.UniqueKeyHolder:   func(e *jobs.Error) string { return "runner cancel " + e.Subject },

	errcode.NoCursor:        text("runner status"),
	errcode.NoLimit:         text("runner limit list"),
	errcode.NoSchedule:      text("runner schedule list"),
	errcode.NoTickFunction:  text("run it from the program that calls OnTick"),
	errcode.ScheduleDiffers: text("--replace"),

	errcode.ListenAddress: text("--listen 127.0.0.1:8484, or --listen unix:PATH"),
	errcode.ListenFailed:  text("--listen 127.0.0.1:0, for any free port"),
	errcode.PublicURL:     text("--public-url https://runner.example.com"),
	errcode.TokenMissing:  text("--listen unix:/run/runner/ui.sock, whose file mode limits access"),
}
