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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/db/pgdriver"
	"example.com/runner/internal/admin"
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

// canaryWithin is how soon an ordinary task must complete while TestRowsOfPlainSQL writes rows.
const canaryWithin = 2 * time.Minute

// TestRowsOfPlainSQL writes rows with extreme values into the tables with SQL, as any program with access to the database could. Meanwhile
// a worker must still complete ordinary tasks, and all commands and pages must still be able to show the rows.
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

// extremeFiles creates special files, and returns paths that the test uses as values. Most of these files cannot be read, or a read of them
// never ends.
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

// rowFuzz is the state of TestRowsOfPlainSQL: a database with extreme rows, and a worker.
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

// canary is an ordinary task that the worker must complete in spite of the extreme rows.
type canary struct {
	id   int64
	from time.Time
}

// rowTables lists the tables and views that the test writes to, with a weight. A greater weight means that the test chooses the table more
// often. Only the view enqueue is meant for writes by other programs.
var rowTables = []struct {
	name string
	n    int
}{{"enqueue", 60}, {"tasks", 20}, {"inputs", 3}, {"dependencies", 4}, {"limits", 4}, {"pauses", 3}, {"schedules", 6},
	{"schedule_inputs", 2},
	{"steps", 2}, {"output", 2}, {"attempts", 4}, {"cancel_requests", 4}, {"progress_reports", 4}, {"last_ids", 1}}

// run writes rows while a worker runs, until the time for the test is over. Then it stops the worker.
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
	if !admin.ParseAddress(f.address).LocalFile() {
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
		if table.name == "last_ids" && !admin.ParseAddress(f.address).LocalFile() {
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

// log returns the last lines of the worker's log. It leaves out lines about failed tasks, because these are normal here.
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

// write inserts or changes a random row.
func (f *rowFuzz) write() {
	n := 0
	for _, table := range rowTables {
		n += table.n
	}
	n = f.values.IntN(n)
	table := ""
	for _, t := range rowTables {
		if n -= t.n; n < 0 {
			table = t.name
			break
		}
	}
	if len(f.columns[table]) == 0 {
		return
	}
	if f.values.IntN(4) == 0 {
		if table == "enqueue" {
			table = "tasks"
		}
		f.update(table)
		return
	}
	names, row := f.row(table)
	f.exec(fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(names, ", "), f.marks(len(row))), row...)
}

// row returns a random row for a table: some of its columns, and values for them.
func (f *rowFuzz) row(table string) (names []string, row []any) {
	large := table == "enqueue" || table == "tasks"
	for _, column := range f.columns[table] {
		if large && f.values.IntN(len(f.columns[table])) > 2 {
			continue
		}
		names, row = append(names, column), append(row, f.value(table, column))
	}
	if large && !slices.Contains(names, "args") {
		names, row = append(names, "args"), append(row, extremeJSON()[f.values.IntN(6)])
	}
	if table == "tasks" { // the table "tasks" rejects a row without the columns below
		now := time.Now().UnixMilli()
		for _, required := range append(f.stateValues(), []columnValue{{"generation_id", int64(1)}, {"state", "pending"},
			{"queue", "default"},
			{"job", "command"}, {"priority", int64(5)}, {"run_at", now},
			{"max_losses", int64(3)}, {"created_at", now}, {"updated_at", now}}...) {
			if !slices.Contains(names, required.column) {
				names, row = append(names, required.column), append(row, required.value)
			}
		}
	}
	if len(names) == 0 {
		return f.row(table)
	}
	return names, row
}

type columnValue struct {
	column string
	value  any
}

// stateValues returns columns that put a task into a random state, with the values that the state requires. Most often the state is
// pending, which requires no columns.
func (f *rowFuzz) stateValues() []columnValue {
	finished := []columnValue{{"attempt", int64(1)}, {"max_attempts", int64(1)}, {"worker", int64(1)},
		{"started_at", f.value("tasks", "started_at")},
		{"finished_at", f.values.from(extremeNumbers)}, {"outcome", f.value("tasks", "outcome")}}
	switch state := f.values.IntN(16); state {
	case 0:
		return []columnValue{{"state", "running"}, {"attempt", int64(1)}, {"max_attempts", int64(1)},
			{"worker", f.values.from(extremeNumbers)},
			{"lease_expires_at", int64(f.values.IntN(2))}, {"started_at", f.value("tasks", "started_at")}}
	case 1:
		return []columnValue{{"state", "blocked"}, {"waits", f.values.from(extremeNumbers)}, {"parts", f.values.from(extremeNumbers)}}
	case 2:
		return []columnValue{{"state", "retrying"}, {"max_attempts", int64(2)}, {"attempt", int64(1)},
			{"run_at", f.value("tasks", "run_at")}}
	case 3:
		return []columnValue{{"state", "scheduled"}, {"generation_id", int64(0)}, {"parts", int64(2)},
			{"run_at", f.value("tasks", "run_at")}}
	case 4, 5, 6:
		return append(finished, columnValue{"state", []string{"completed", "failed", "cancelled"}[state-4]})
	}
	return nil
}

// value returns a random value for a column. It never returns values that pause or limit all tasks, because the worker must be able to run
// the ordinary tasks of the test (see type canary).
func (f *rowFuzz) value(table, column string) any {
	for {
		value := f.values.of(column)
		text := fmt.Sprintf("%s", value) // some values are bytes; %s converts them to text, as a PostgreSQL server does
		if (table == "pauses" || table == "limits") && (column == "queue" || column == "name") && (text == "" || text == "command") {
			continue
		}
		// A row in cancel_requests cancels a task, but nothing may cancel a canary (see type canary). So the value is the id of an existing
		// task. A greater id could become the id of a later canary.
		if table == "cancel_requests" && column == "task_id" {
			if value = f.newest(); value == int64(1) {
				value = int64(0)
			}
			return value
		}
		if (column == "task_id" || column == "on_id" || column == "last_task_id") && f.values.IntN(2) == 0 {
			return int64(f.values.IntN(f.accepted + 2))
		}
		return value
	}
}

// update changes some columns of one row. It does not change the tasks that the worker must complete (see type canary).
func (f *rowFuzz) update(table string) {
	columns := f.columns[table]
	var sets []string
	var row []any
	for range 1 + f.values.IntN(2) {
		column := columns[f.values.IntN(len(columns))]
		if slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, column+" ") }) {
			continue
		}
		row = append(row, f.value(table, column))
		sets = append(sets, column+" = "+f.mark(len(row)))
	}
	key := map[string]string{"tasks": "id", "limits": "name", "pauses": "queue", "schedules": "name", "schedule_inputs": "name",
		"last_ids": "id"}[table]
	if key == "" {
		key = "task_id"
	}
	where := ""
	if table == "tasks" {
		where = ` WHERE queue <> 'canary'`
	}
	f.exec(fmt.Sprintf(`UPDATE %[1]s SET %[2]s WHERE %[3]s IN (SELECT %[3]s FROM %[1]s%[4]s ORDER BY %[3]s DESC LIMIT 1)`, table,
		strings.Join(sets,
			", "), key, where), row...)
}

func (f *rowFuzz) mark(n int) string {
	if !admin.ParseAddress(f.address).LocalFile() {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

func (f *rowFuzz) marks(n int) string {
	var marks []string
	for i := range n {
		marks = append(marks, f.mark(i+1))
	}
	return strings.Join(marks, ", ")
}

// exec runs a statement. It accepts an error, because the database should reject some of the values.
func (f *rowFuzz) exec(text string, row ...any) {
	result, err := f.raw.ExecContext(f.Context(), text, row...)
	if err != nil {
		f.rejected[err.Error()[:min(60, len(err.Error()))]]++
		return
	}
	if n, err := result.RowsAffected(); err == nil {
		f.accepted += int(max(n, 1)) // at least 1, because a write to a view reports 0 rows
	}
}
