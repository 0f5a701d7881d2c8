// Programs compares three small programs, each written with runner, River,
// backlite and asynq. It builds and runs them, checks that they do the same,
// and prints a table. README.md describes the programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	libraries = []string{"runner", "river", "backlite", "asynq"}
	titles    = map[string]string{"runner": "runner", "river": "River 0.49", "backlite": "backlite 0.6", "goqite": "goqite 0.4",
		"asynq": "asynq 0.26"}
)

// sizes say how much work the measured programs do.
type sizes struct {
	mails, photos, readings int
	outage                  bool          // whether the server that receives the readings fails for some seconds
	idle                    time.Duration // period in which the mail service is idle and its processor time is measured
}

// full holds the amounts of work for the table in docs/comparison.md.
var full = sizes{mails: 300, photos: 24, readings: 60, idle: time.Minute}

// figures are the measurements of one library.
type figures struct {
	lines, binary map[string]int // lines of code of each program, and bytes of its stripped binary
	mailBytes     float64        // bytes written for each mail
	readingBytes  float64        // bytes written for each reading
	rss, redisRSS float64        // memory of the program and of Redis after the work, in MB
	idle          float64        // processor time of the idle mail service, in percent of a core
	recovered     time.Duration  // time from the restart of the killed program until its last thumbnail
	twice         int            // mails that were sent twice
}

func main() {
	short := flag.Bool("short", false, "small sizes, only to check the programs")
	toPage := flag.Bool("write", false, "also write the table into docs/comparison.md")
	small := flag.Bool("small", false, "measure only the footprint of the smallest programs: a minute")
	flag.Parse()
	if *short && *toPage {
		log.Fatal("-write needs the sizes of the page, so it excludes -short")
	}

	s := full
	if *short {
		s = sizes{mails: 20, photos: 8, readings: 8, outage: true}
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	if *small {
		all, err := measureSmall(ctx, 20, 30*time.Second)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(smallTable(all))
		return
	}

	all, err := compare(ctx, s, libraries)
	if err != nil {
		log.Fatal(err)
	}

	text := table(all, s)
	fmt.Print(text)
	if *toPage {
		if err := write(text); err != nil {
			log.Fatal(err)
		}
	}
}

// compare builds and runs the programs of the libraries, all at the same time.
func compare(ctx context.Context, s sizes, names []string) (map[string]*figures, error) {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	all := map[string]*figures{}
	for _, name := range names {
		if all[name], err = build(ctx, dir, name); err != nil {
			return nil, err
		}
	}

	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	for name, f := range all {
		for program, measure := range map[string]func(context.Context, bench, sizes, *figures) error{
			"mail": mail, "photos": photos, "collector": collector} {
			group.Go(func() {
				b, err := newBench(dir, name, program)
				if err == nil {
					err = errors.Join(measure(ctx, b, s, f), b.close())
				}
				if err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("%s with %s: %w", program, name, err))
					mu.Unlock()
				}
			})
		}
	}

	group.Wait()
	return all, errors.Join(errs...)
}

// table returns the table as Markdown.
func table(all map[string]*figures, s sizes) string {
	var text strings.Builder
	row := func(title string, cell func(f *figures) string) {
		cells := []string{title}
		for _, name := range libraries {
			cells = append(cells, cell(all[name]))
		}
		fmt.Fprintln(&text, "|", strings.Join(cells, " | "), "|")
	}
	var heads []string
	for _, name := range libraries {
		heads = append(heads, titles[name])
	}

	fmt.Fprintln(&text, "| |", strings.Join(heads, " | "), "|")
	fmt.Fprintln(&text, "|---|"+strings.Repeat("--:|", len(heads)))
	for _, program := range []string{"mail", "photos", "collector"} {
		row("lines of code of the program "+program, func(f *figures) string { return fmt.Sprint(f.lines[program]) })
	}

	row("stripped binary of the program mail", func(f *figures) string { return fmt.Sprintf("%.1f MB", float64(f.binary["mail"])/1e6) })
	row("memory after "+fmt.Sprint(s.mails)+" mails (RSS)", func(f *figures) string {
		if f.redisRSS > 0 {
			return fmt.Sprintf("%.0f MB + %.0f MB Redis", f.rss, f.redisRSS)
		}
		return fmt.Sprintf("%.0f MB", f.rss)
	})
	row("bytes written for each mail", func(f *figures) string { return thousands(f.mailBytes) })
	row("bytes written for each reading", func(f *figures) string { return thousands(f.readingBytes) })
	row("processor time while idle, of one core", func(f *figures) string { return fmt.Sprintf("%.2f %%", f.idle) })
	row("thumbnails complete after the restart", func(f *figures) string { return fmt.Sprintf("%.0f s", f.recovered.Seconds()) })
	row("mails sent twice", func(f *figures) string { return fmt.Sprint(f.twice) })
	return text.String()
}

// thousands formats a number of bytes. It rounds to hundreds and separates
// thousands with commas.
func thousands(bytes float64) string {
	n := 100 * int(math.Round(bytes/100))
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

const (
	page       = "../../docs/comparison.md"
	tableBegin = "<!-- table: begin -->\n"
	tableEnd   = "<!-- table: end -->\n"
)

// splitPage splits the page of the comparison: the text before its table, the
// table, and the text after the table.
func splitPage(text string) (before, table, after string, err error) {
	before, rest, found := strings.Cut(text, tableBegin)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		err = fmt.Errorf("%s has no table between %q and %q", page, strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return before, table, after, err
}

// write replaces the table in the page docs/comparison.md.
func write(table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}

	before, _, after, err := splitPage(string(text))
	if err != nil {
		return err
	}

	return os.WriteFile(page, []byte(before+tableBegin+table+tableEnd+after), 0o644)
}

// countLines counts the lines of a program that are neither empty nor comments.
func countLines(path string) (int, error) {
	text, err := os.ReadFile(path)
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || strings.HasPrefix(line, "//")
	})
	return len(lines), err
}
