// Command postgres compares runner with River on one PostgreSQL server, which
// it starts itself. In each round it measures one system after the other. Every
// commit is on the disk, because fsync and synchronous_commit are on. The
// command also checks that every task ran exactly once. A run fails if this
// check fails.
//
//	go run .                 all comparisons, three rounds; takes some minutes
//	go run . -short          small sizes, one round; CI runs this
//	go run . -only drain     only the drains
//	go run . -only many      throughput by number of processes and of concurrent tasks
//	go run . -rows 10000000  only the cost of a claim beside this many rows
//	go run . -finished 50000000  only tasks that arrive beside this many completed tasks, and while retention deletes some of them
//	go run . -snapshot 3m    only tasks that arrive one by one while a session holds a snapshot for this time
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/test/pgserver"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if text := os.Getenv(childVariable); text != "" {
		if err := beChild(ctx, text); err != nil {
			log.Fatal("bench worker: ", err)
		}
		return
	}

	short := flag.Bool("short", false, "small sizes, one round")
	rounds := flag.Int("rounds", 3, "how often each measurement is repeated, all of them in turns")
	only := flag.String("only", "^[^m]", "regular expression: measurements whose `workload/system` it matches")
	rows := flag.Int("rows", 0, "measure claims beside so many rows, and nothing else")
	held := flag.Duration("snapshot", 0, "measure tasks that arrive while a session holds a snapshot for so long, and nothing else")
	churn := flag.Int("churn", 0, "measure so many tasks that arrive, run and are deleted, and nothing else")
	finished := flag.Int("finished", 0, "measure tasks that arrive beside so many completed tasks, and nothing else")
	workers := flag.Int("workers", 4, "the number of workers with -snapshot, -churn and -finished")
	callers := flag.Int("callers", 32, "with -snapshot, -churn and -finished: the number of callers, each of which waits for its task")
	address := flag.String("address", "", "of a server that is there already, with an empty database for this; default: a new one")
	flag.Parse()
	if *short {
		*rounds = 1
	}

	e := &env{address: *address, short: *short, rows: *rows, churn: *churn, finished: *finished,
		snapshot: snapshotRun{held: *held, measured: min(20*time.Second, *held), workers: *workers, callers: *callers}}
	if err := run(ctx, e, *rounds, *only); err != nil {
		log.Fatal("bench: ", err)
	}
}

// env is the environment of a measurement.
type env struct {
	address string // address of an empty database
	short   bool
	// Each of the next four fields selects a special measurement, which runs in
	// place of all others. A field that is 0 selects none.
	rows     int
	churn    int
	finished int
	snapshot snapshotRun
	cpu      []float64 // processor time of the server and the workers in the last drain, in µs per task; empty if there was none
}

// size returns n. In a short run it returns a twentieth of n, but at least 20.
func (e *env) size(n int) int {
	if e.short {
		return max(n/20, 20)
	}
	return n
}

// settings are the settings of the server. A commit returns only when its data
// is on the disk. Checkpoints are rare, because a checkpoint would slow down
// only some of the measurements.
var settings = []string{"fsync=on", "synchronous_commit=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=8GB",
	"checkpoint_timeout=30min"}

// measurement is one cell of a table: it measures a system under a workload.
type measurement struct {
	workload, unit, system string
	run                    func(context.Context, *env) (float64, error)
	values                 []float64
	cpu                    []float64 // values of env.cpu after each round; empty if the workload doesn't measure it
}

func run(ctx context.Context, e *env, rounds int, only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}

	renew := func() error { return empty(ctx, e.address) }
	if e.address == "" {
		server, err := pgserver.Start(ctx, settings...)
		if err != nil {
			return err
		}
		defer server.Close()
		e.address = server.Address("bench")
		renew = func() error { return recreate(ctx, server.Address("postgres"), "bench") }
	}
	if err := renew(); err != nil {
		return err
	}

	switch {
	case e.rows > 0:
		return grown(ctx, e, e.rows)
	case e.churn > 0:
		return e.snapshot.churn(ctx, e.address, e.churn)
	case e.finished > 0:
		return e.snapshot.finished(ctx, e.address, e.finished)
	case e.snapshot.held > 0:
		return e.snapshot.snapshot(ctx, e, renew)
	}

	list := slices.DeleteFunc(measurements(), func(m *measurement) bool { return !match.MatchString(m.workload + "/" + m.system) })
	if len(list) == 0 {
		return fmt.Errorf("nothing matches %q", only)
	}

	began := time.Now()
	for round := range rounds {
		for _, m := range list {
			if err := renew(); err != nil {
				return err
			}

			e.cpu = nil
			value, err := m.run(ctx, e)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", m.workload, m.system, err)
			}

			m.values, m.cpu = append(m.values, value), append(m.cpu, e.cpu...)
			log.Printf("%s  round %d  %-18s %-24s %10.2f %s  %.0f", time.Since(began).Round(time.Second), round+1, m.workload, m.system,
				value, m.unit, e.cpu)
		}
	}

	report(list)
	return nil
}

// report prints the median of each measurement. runner is the first system of
// each workload. For each other system, report also prints a ratio: 2 means
// that runner is twice as fast as that system.
func report(list []*measurement) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s, %d processors\nworkload\tsystem\tmedian\tunit\tleast\tmost\tratio\tcpu µs\tof it\n",
		runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU())
	first, cost := map[string]float64{}, map[string]float64{}
	for _, m := range list {
		slices.Sort(m.values)
		median := m.values[len(m.values)/2]
		ratio := ""
		if of, ok := first[m.workload]; !ok {
			first[m.workload] = median
		} else if ratio = fmt.Sprintf("%.2f", of/median); m.unit == "ms" {
			ratio = fmt.Sprintf("%.2f", median/of)
		}

		cpu, part := "", ""
		if slices.Sort(m.cpu); len(m.cpu) > 0 {
			median := m.cpu[len(m.cpu)/2]
			cpu = fmt.Sprintf("%.0f", median)
			if of, ok := cost[m.workload]; !ok {
				cost[m.workload] = median
			} else {
				part = fmt.Sprintf("%.2f", of/median)
			}
		}

		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%.2f\t%.2f\t%s\t%s\t%s\n", m.workload, m.system, median, m.unit, m.values[0],
			m.values[len(m.values)-1], ratio, cpu, part)
	}

	w.Flush()
	fmt.Println("\nratio: how often as quick runner is; of it: the part of the other system's processor time that runner takes")
}

// recreate drops a database and creates it again.
func recreate(ctx context.Context, address, name string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	for _, text := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name, "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return err
		}
	}

	return nil
}

// empty removes the tables of a measurement from the database that the flag
// -address names.
func empty(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	var tables []string
	rows, err := conn.Query(ctx, `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'`)
	if err == nil {
		tables, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}

	for _, table := range tables {
		if !strings.HasPrefix(table, "river_") {
			return fmt.Errorf("the database has a table %s: it is not for this", table)
		}
	}

	if err == nil {
		_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS runner CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	}

	return err
}
