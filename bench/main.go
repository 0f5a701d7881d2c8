// Command bench compares runner with other job systems on the same machine, on
// the same file system and with the same durability. In each round it measures
// one system after the other. It also checks that every task ran exactly once.
// A run fails if this check fails.
//
//	./run                 everything, five rounds, about 40 minutes
//	./run -short          small sizes, one round; CI runs this
//	./run -only drain
//	./run -out ../docs/performance -page ../docs/performance.md -history ../docs/dev/bench-history.tsv    make bench runs this
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

func main() {
	short := flag.Bool("short", false, "small sizes, one round")
	rounds := flag.Int("rounds", 0, "how often each measurement is repeated, all of them in turns (default 5; 1 with -short)")
	only := flag.String("only", "", "regular expression: measurements whose `workload/system` it matches")
	out := flag.String("out", "", "write results.json and plots into this `directory`")
	page := flag.String("page", "", "write the tables into this `file`, between the lines \"<!-- measured -->\" and \"<!-- end -->\"")
	history := flag.String("history", "", "print which figures are worse than in the last run in this `file`, and add this run")
	commit := flag.String("commit", "", "the commit to name in the history")
	dir := flag.String("dir", "", "where the databases are made (default a temporary directory)")
	binary := flag.String("runner", "", "the runner binary, for what starts processes")
	log.SetFlags(0)
	if os.Getenv(memoryVariable) != "" {
		os.Unsetenv(memoryVariable)
		if err := tellMemory(os.Args[1:]); err != nil {
			log.Fatal("bench: ", err)
		}
		return
	}

	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if text := os.Getenv(childVariable); text != "" {
		if err := beChild(ctx, text); err != nil {
			log.Fatal("bench worker: ", err)
		}
		return
	}

	e := &env{short: *short, binary: *binary}
	if *rounds == 0 {
		if *rounds = 5; *short {
			*rounds = 1
		}
	}
	if err := run(ctx, e, *rounds, *only, *dir, target{*out, *page, *history, *commit}); err != nil {
		log.Fatal("bench: ", err)
	}
}

// env is the environment of a measurement.
type env struct {
	dir    string // directory that is created for each measurement
	short  bool
	binary string // path of the runner binary; if empty, measurements that start processes are left out
}

// size returns n, or a part of n if this is a short run.
func (e *env) size(n int) int {
	switch {
	case !e.short:
		return n
	case n >= 5000 && n <= 100_000: // n tasks are drained; far fewer tasks would mainly measure the start of a process
		return n / 4
	case n < 1000: // n latencies are measured; a percentile of fewer than 20 latencies would depend on chance
		return max(n/3, 20)
	}
	return max(n/20, 20)
}

// path returns the path of a file in the measurement's own directory.
func (e *env) path(name string) string { return filepath.Join(e.dir, name) }

// measurement is one cell of a table: a system and a workload. run measures the
// system and returns the figure in the unit of the workload.
type measurement struct {
	workload *workload
	system   string
	run      func(context.Context, *env) (float64, error)
	values   []float64
}

// workload is a kind of work. The report has a table for it.
type workload struct {
	name  string // name for the flag -only
	title string
	unit  string
	low   bool // whether lower figures are better
}

func run(ctx context.Context, e *env, rounds int, only, dir string, to target) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}

	able, err := measurements(e)
	if err != nil {
		return err
	}

	var list []*measurement
	for _, m := range able {
		if match.MatchString(m.workload.name + "/" + m.system) {
			list = append(list, m)
		}
	}

	if len(list) == 0 {
		return fmt.Errorf("nothing matches %q", only)
	}

	root, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)

	began := time.Now()
	for round := range rounds {
		for i, m := range list {
			e.dir = filepath.Join(root, fmt.Sprintf("%d-%d", round, i))
			if err := os.Mkdir(e.dir, 0o700); err != nil {
				return err
			}

			value, err := m.run(ctx, e)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", m.workload.name, m.system, err)
			}

			m.values = append(m.values, value)
			log.Printf("%s  round %d  %-28s %-36s %s", time.Since(began).Round(time.Second), round+1, m.workload.name, m.system,
				figure(value, m.workload.unit))
			if err := os.RemoveAll(e.dir); err != nil {
				return err
			}
		}
	}

	return finish(os.Stdout, list, to)
}

// target says where to write the results, besides standard output. If a path is
// empty, the file isn't written.
type target struct {
	dir  string // directory for results.json and the plots
	page string // Markdown page whose tables bench replaces

	history string // file to which bench appends the results of this run
	commit  string
}

func finish(w io.Writer, list []*measurement, to target) error {
	r := newReport(list)
	if err := r.markdown(w); err != nil {
		return err
	}
	if to.history != "" {
		if err := r.remember(w, to.history, to.commit); err != nil {
			return err
		}
	}
	if to.page != "" {
		if err := r.rewrite(to.page, to.dir); err != nil {
			return err
		}
	}
	if to.dir == "" {
		return nil
	}
	if err := os.MkdirAll(to.dir, 0o755); err != nil {
		return err
	}

	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to.dir, "results.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}

	return r.plots(to.dir)
}

// median returns the median of some figures.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// percentile returns the duration that a share p of all durations doesn't
// exceed. For the median p is 0.5.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}
