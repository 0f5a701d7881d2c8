package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// report is the content of results.json.
type report struct {
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	At       time.Time         `json:"at"`
	Tables   []*table          `json:"tables"`
}

type table struct {
	Name  string  `json:"name"`
	Title string  `json:"title"`
	Unit  string  `json:"unit"`
	Low   bool    `json:"less_is_better"`
	Rows  []tally `json:"rows"`
}

// tally is the row of one system in a table. The field Median is the median of
// all rounds. The field Ratio compares the first system of the table with this
// system: it is 2 if the first system is twice as good.
type tally struct {
	System string    `json:"system"`
	Median float64   `json:"median"`
	Ratio  float64   `json:"first_is_times_better"`
	Values []float64 `json:"values"`
}

func newReport(list []*measurement) *report {
	r := &report{Machine: machine(), Versions: versions(), At: time.Now().UTC().Truncate(time.Second)}
	tables := map[*workload]*table{}
	for _, m := range list {
		t := tables[m.workload]
		if t == nil {
			t = &table{Name: m.workload.name, Title: m.workload.title, Unit: m.workload.unit, Low: m.workload.low}
			tables[m.workload] = t
			r.Tables = append(r.Tables, t)
		}

		row := tally{System: m.system, Median: median(m.values), Values: m.values}
		first := row.Median
		if len(t.Rows) > 0 {
			first = t.Rows[0].Median
		}
		if row.Ratio = first / row.Median; t.Low {
			row.Ratio = row.Median / first
		}

		t.Rows = append(t.Rows, row)
	}

	return r
}

// markdown prints the machine, the aims and the tables.
func (r *report) markdown(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s. %s.\n\n", r.Machine, r.At.Format("2 January 2006"))
	r.aims(w)
	r.tables(w, "")
	return w.Flush()
}

// rewrite replaces the tables in a page. dir is the directory of the plots.
func (r *report) rewrite(page, dir string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}

	const begin, end = "<!-- measured -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(old), begin)
	_, after, also := strings.Cut(rest, end)
	if !found || !also {
		return fmt.Errorf("%s lacks a line %q or %q", page, strings.TrimSpace(begin), end)
	}

	var text bytes.Buffer
	w := bufio.NewWriter(&text)
	fmt.Fprintf(w, "%s%s\n%s, %s. ", before, begin, r.Machine, r.At.Format("2 January 2006"))
	names := slices.Sorted(maps.Keys(r.Versions))
	for i, name := range names {
		fmt.Fprintf(w, "%s %s%s", name, r.Versions[name], map[bool]string{true: ".\n\n", false: ", "}[i == len(names)-1])
	}

	r.aims(w)
	r.tables(w, filepath.Base(dir))
	fmt.Fprint(w, end, after)
	if err := w.Flush(); err != nil {
		return err
	}

	return os.WriteFile(page, text.Bytes(), 0o644)
}

// tables prints the tables. If dir isn't empty, it also prints links to their
// plots in dir.
func (r *report) tables(w io.Writer, dir string) {
	for _, t := range r.Tables {
		fmt.Fprintf(w, "### %s\n\n", t.Title)
		if dir != "" && t.plotted() {
			fmt.Fprintf(w, "![%s](%s/%s.svg)\n\n", t.Title, dir, t.Name)
		}

		fmt.Fprintf(w, "| | %s | compared with the first row |\n|---|--:|--:|\n", t.unit())
		for i, row := range t.Rows {
			ratio := ""
			if i > 0 && !math.IsInf(row.Ratio, 0) && !math.IsNaN(row.Ratio) {
				ratio = fmt.Sprintf("%.2f ×", row.Ratio)
			}
			fmt.Fprintf(w, "| %s | %s | %s |\n", row.System, number(row.Median), ratio)
		}

		fmt.Fprintln(w)
	}
}

// unit returns the name of the unit of a table's figures.
func (t *table) unit() string {
	if t.Unit == "/s" {
		return "a second"
	}
	return t.Unit
}

func figure(value float64, unit string) string {
	if strings.HasPrefix(unit, "/") {
		return number(value) + unit
	}
	return number(value) + " " + unit
}

// number formats a value with three significant digits, and with commas between
// thousands.
func number(value float64) string {
	switch {
	case value >= 999.5:
		text := fmt.Sprintf("%.0f", value)
		return text[:len(text)-3] + "," + text[len(text)-3:]
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
			}
		}
	}

	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(text)), "-")
	return fmt.Sprintf("%d × %s, %s %s, %s", runtime.NumCPU(), model, runtime.GOOS, kernel, runtime.Version())
}

func versions() map[string]string {
	list := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "github.com/riverqueue/river", "github.com/mikestefanello/backlite", "modernc.org/sqlite":
				list[m.Path] = m.Version
			}
		}
	}
	if havePlainjob() {
		list["plainjob"] = "0.0.14 on better-sqlite3 12.11.1"
	}

	for tool, args := range map[string][]string{"node": {"--version"}, "tsp": {"-V"}, "parallel": {"--minversion", "0"},
		"sqlite3": {"--version"}, "xargs": {"--version"}} {
		if out, err := exec.Command(tool, args...).Output(); err == nil {
			list[tool], _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
		}
	}

	return list
}
