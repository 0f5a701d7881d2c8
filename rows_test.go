//go:build unix

package main

import (
	"bytes"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/pgdriver"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
	"example.com/runner/web"
)

var (
	rowsFor  = flag.Duration("rows", 2*time.Second, "duration of TestRowsOfPlainSQL on each engine")
	rowsSeed = flag.Uint64("rows-seed", 0, "seed of the random choices; 0 for a new one")
)

// canaryWithin is how soon an ordinary task must complete while
// TestRowsOfPlainSQL writes rows.
const canaryWithin = 2 * time.Minute

// TestRowsOfPlainSQL writes rows with extreme values into the tables with SQL,
// as any program with access to the database could. Meanwhile a worker must
// still complete ordinary tasks, and all commands and pages must still be able
// to show the rows.
func TestRowsOfPlainSQL(t *testing.T) {
	t.Parallel()
	seed := *rowsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for name, address := range map[string]func(t *testing.T, dir string) string{
		"file": func(_ *testing.T, dir string) string { return filepath.Join(dir, "runner.db") },
		"server": func(t *testing.T, _ string) string {
			testkit.NeedFull(t)
			s, err := server()
			if errors.Is(err, pgserver.ErrNone) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			return s.Address("postgres", fmt.Sprintf("search_path=rows%d", serverDatabases.Add(1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("-rows-seed %d", seed)
			dir := t.TempDir()
			f := &rowFuzz{T: t, dir: dir, address: address(t, dir), rejected: map[string]int{}}
			f.values = rowValues{Rand: rand.New(rand.NewPCG(seed, 0)), files: extremeFiles(t, dir)}
			f.run()
		})
	}
}

// extremeFiles creates special files, and returns paths that the test uses as
// values. Most of these files cannot be read, or a read of them never ends.
func extremeFiles(t *testing.T, dir string) []any {
	fifo, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "large")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(large, bytes.Repeat([]byte("#\n"), 1<<20), 0o600),
		os.Symlink("/dev/zero", filepath.Join(dir, "zero")),
		os.Symlink("loop", filepath.Join(dir, "loop"))); err != nil {
		t.Fatal(err)
	}
	return []any{fifo, large, dir + "/zero", dir + "/loop", dir, "/dev/zero", "/dev/null", "/dev/stdin", "/dev/tty", "/proc/self/environ",
		"/proc/self/mem", "/proc/kmsg", "/", "relative", "",
		"/no/such", "/\x00", "/\xff", "/" + strings.Repeat("d/", 2047), strings.Repeat("x", 5000), "/bin/true"}
}

// rowFuzz is the state of TestRowsOfPlainSQL: a database with extreme rows, and
// a worker.
type rowFuzz struct {
	*testing.T
	values       rowValues
	dir, address string
	r            *runner.Runner
	raw          *sql.DB
	pages        http.Handler
	columns      map[string][]string // names of the columns of each table
	canaries     []canary
	accepted     int            // number of rows that the database has accepted
	rejected     map[string]int // number of rejected rows for each error; the key is the start of the error message
}

// canary is an ordinary task that the worker must complete in spite of the
// extreme rows.
type canary struct {
	id   int64
	from time.Time
}

// rowTables lists the tables and views that the test writes to, with a weight.
// A greater weight means that the test chooses the table more often. Only the
// view enqueue is meant for writes by other programs.
var rowTables = []struct {
	name string
	n    int
}{{"enqueue", 60}, {"tasks", 20}, {"inputs", 3}, {"dependencies", 4}, {"limits", 4}, {"pauses", 3}, {"schedules", 6},
	{"schedule_inputs", 2},
	{"steps", 2}, {"output", 2}, {"attempts", 4}, {"cancel_requests", 4}, {"progress_reports", 4}, {"last_ids", 1}}

// run writes rows while a worker runs, until the time for the test is over.
// Then it stops the worker.
func (f *rowFuzz) run() {
	f.open()
	worker := f.work()
	gone := make(chan error, 1)
	go func() { gone <- worker.Wait() }()
	shown := time.Now()
	const rowsLeast = 10 // minimum number of rows, even if they take longer than rowsFor on a busy machine
	for end, n := time.Now().Add(*rowsFor), 0; (time.Now().Before(end) || f.accepted < rowsLeast) && !f.Failed(); n++ {
		f.write()
		if n%10 == 0 {
			f.canary()
			f.flags()
		}
		if time.Since(shown) > time.Second {
			f.showAll()
			shown = time.Now()
		}
		select {
		case err := <-gone:
			f.Fatalf("got the end of the worker with error %v, want it to run\n%s", err, f.log())
		default:
		}
	}
	f.showAll()
	for len(f.canaries) > 0 && !f.Failed() {
		f.awaitCanary()
	}
	if f.Failed() {
		f.Log(f.log())
	}
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		f.Error(err)
	}
	select {
	case err := <-gone:
		if err != nil {
			f.Errorf("got error %v from the worker, want none\n%s", err, f.log())
		}
	case <-time.After(time.Minute):
		f.Errorf("got a worker that runs a minute after TERM, want it stopped\n%s", f.log())
	}
	f.Logf("%d rows were accepted; rejected: %v", f.accepted, f.rejected)
}

// open opens the database and reads the columns of its tables.
func (f *rowFuzz) open() {
	var err error
	ctx := f.Context()
	if f.r, err = runner.Open(ctx, f.address, runner.Options{Engine: postgres.Engine()}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { f.r.Close() })
	f.pages = web.Handler(f.r, web.Options{Authorize: func(*http.Request) error { return nil },
		Log: slog.New(slog.NewTextHandler(f.Output(), nil))})
	if !db.ParseAddress(f.address).LocalFile() {
		server, err := pgdriver.Engine().Connect(f.address, 10*time.Second)
		if err != nil {
			f.Fatal(err)
		}
		f.raw = sql.OpenDB(server.Write)
		f.raw.SetMaxOpenConns(1)
		f.exec(`SET search_path = ` + server.Schema)
	} else if f.raw, err = sql.Open("sqlite", "file:"+f.address+"?_pragma=busy_timeout(10000)"); err != nil {
		f.Fatal(err)
	}
	f.raw.SetMaxOpenConns(1)
	f.Cleanup(func() { f.raw.Close() })
	f.columns = map[string][]string{}
	for _, table := range rowTables {
		if table.name == "last_ids" && !db.ParseAddress(f.address).LocalFile() {
			continue // a database on a PostgreSQL server has a sequence instead of the table last_ids
		}
		rows, err := f.raw.QueryContext(ctx, `SELECT * FROM `+table.name+` LIMIT 0`)
		if err != nil {
			f.Fatal(err)
		}
		f.columns[table.name], err = rows.Columns()
		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *rowFuzz) command(args ...string) *exec.Cmd {
	c := exec.Command("runner", args...)
	c.Dir = f.dir
	c.Env = append(os.Environ(), "RUNNER_DB="+f.address, "HOME="+f.dir)
	return c
}

// work starts a worker.
func (f *rowFuzz) work() *exec.Cmd {
	f.Helper()
	c := f.command("work", "-c", "4", "--lease", "5s", "--log-level", "warn")
	testkit.StartWithLog(f, c, filepath.Join(f.dir, "log"))
	return c
}

// log returns the last lines of the worker's log. It leaves out lines about
// failed tasks, because these are normal here.
func (f *rowFuzz) log() string {
	text, _ := os.ReadFile(filepath.Join(f.dir, "log"))
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "task failed") && !strings.Contains(line, "attempt failed") && len(line) < 5000 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-60):], "")
}
