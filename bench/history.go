package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// A history is a text file with the results of all runs. Each line has the
// value that one run measured for one aim (a performance goal): the time, the
// commit, the name of the aim and the value, separated by tabs.

// lastOf returns the values of the last run in a history file. The key is the
// name of the aim. lastOf returns nil if the file doesn't exist yet.
func lastOf(path string) (map[string]float64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()

	var last map[string]float64
	var at string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		field := strings.Split(lines.Text(), "\t")
		var value float64
		if _, err := fmt.Sscan(field[len(field)-1], &value); err != nil || len(field) != 4 {
			return nil, fmt.Errorf("%s: invalid line %q", path, lines.Text())
		}
		if field[0] != at {
			at, last = field[0], map[string]float64{}
		}
		last[field[2]] = value
	}

	return last, lines.Err()
}

// maxFactor is the greatest factor by which a result may be worse than the
// result of the last run. A greater factor counts as a regression. A smaller
// factor may be chance, because other programs also use the machine.
const maxFactor = 1.15

// remember prints the results that are worse than those of the last run in the
// history file, and adds this run to the file.
func (r *report) remember(w io.Writer, path, commit string) error {
	last, err := lastOf(path)
	if err != nil {
		return err
	}

	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()

	for _, a := range r.measuredAims() {
		if before, ok := last[a.text]; ok {
			change := before / a.value
			if a.low {
				change = a.value / before
			}
			if change > maxFactor {
				fmt.Fprintf(w, "worse than in the last run: %s: %s, before %s\n", a.text, figure(a.value, a.unit), figure(before, a.unit))
			}
		}
		if _, err := fmt.Fprintf(file, "%s\t%s\t%s\t%.6g\n", r.At.Format("2006-01-02T15:04:05Z"), commit, a.text, a.value); err != nil {
			return err
		}
	}

	return file.Close()
}
