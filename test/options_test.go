package test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
)

// TestOptionTables compares the tables of options in the docs with
// taskspec.Options. To write the rows: UPDATE_DOCS=1 go test ./test -run
// TestOptionTables
func TestOptionTables(t *testing.T) {
	for _, table := range []struct {
		page, heading string
		without       []string // keys of options that are missing in this table on purpose
		only          func(*taskspec.OptionInfo) bool
		row           func(*taskspec.OptionInfo) string
	}{
		{"docs/json.md", "\n## task\n", []string{"in", "expires_in", "input", "unique_args"}, anyOption, recordRow},
		{"docs/json.md", "\n## task of a schedule\n", []string{"input"}, func(o *taskspec.OptionInfo) bool { return !o.OneTask },
			recordRow},
		{"docs/sql.md", "\n### Columns of `enqueue`\n", []string{"in", "expires_in", "path", "event", "unique_args", "unique_global"},
			anyOption, columnRow},
		{"docs/file-format.md", "\n## `options`\n", nil, (*taskspec.OptionInfo).Stored, storedRow},
	} {
		page := readFile(t, table.page)
		above, rest, found := strings.Cut(page, table.heading)
		if !found {
			t.Fatalf("%s: got no heading %q, want it", table.page, table.heading)
		}
		body, below, _ := strings.Cut(rest, "\n#")
		previous := "args"
		for _, o := range taskspec.Options {
			if slices.Contains(table.without, o.Key) || !table.only(o) {
				continue
			}
			body = setRow(body, o.Key, previous, table.row(o))
			previous = o.Key
		}
		written := above + table.heading + body + "\n#" + below
		if os.Getenv("UPDATE_DOCS") != "" {
			writeFile(t, table.page, written)
		} else if written != page {
			t.Errorf("%s, %q: got other rows than those of taskspec.Options; to write them: make docs",
				table.page, table.heading)
		}
	}
}

// setRow replaces the row of a key in a table. If there is no such row, it
// inserts one below the row of the key in previous.
func setRow(table, key, previous, row string) string {
	old := regexp.MustCompile("(?m)^\\| `" + key + "` \\|.*$")
	if old.MatchString(table) {
		return old.ReplaceAllLiteralString(table, row)
	}
	behind := regexp.MustCompile("(?m)^\\| `" + previous + "` \\|.*$")
	return behind.ReplaceAllStringFunc(table, func(above string) string { return above + "\n" + row })
}

// meaning returns the description of an option for the docs.
func meaning(o *taskspec.OptionInfo) string {
	text := o.Doc
	if text == "" {
		text = o.Help
	}
	for i, word := range o.Words {
		text += []string{": ", ", ", " or "}[min(i, 1)+i/(len(o.Words)-1)] + "`" + word + "`"
	}
	return text
}

// recordRow returns the row for an option in the table of a JSON record.
func recordRow(o *taskspec.OptionInfo) string { return fmt.Sprintf("| `%s` | %s |", o.Key, meaning(o)) }

// columnRow returns the row for an option in the table of the view enqueue.
func columnRow(o *taskspec.OptionInfo) string {
	usual := storedDefault(o)
	switch {
	case o.Zero == "now":
		usual = o.Zero
	case usual == "`false`":
		usual = "0"
	case usual == "":
		usual = "NULL"
	}
	return fmt.Sprintf("| `%s` | %s | %s |", o.Key, usual, meaning(o))
}

// storedRow returns the row for an option in the table of options that the
// database stores as JSON.
func storedRow(o *taskspec.OptionInfo) string {
	usual := storedDefault(o)
	switch {
	case o.Key == "retry_on":
		usual = "all exit codes"
	case usual == "":
		usual = "none"
	}
	return fmt.Sprintf("| `%s` | %s |", o.Key, usual)
}

// storedDefault returns the default of an option as the database stores it, or
// an empty string if there is none.
func storedDefault(o *taskspec.OptionInfo) string {
	if d, ok := o.Default().(*taskspec.Duration); ok && o.Zero == "" {
		return strconv.FormatInt(time.Duration(*d).Milliseconds(), 10)
	}
	data, err := json.Marshal(o.Default())
	text := string(data)
	switch {
	case o.Zero != "" || err != nil || text == "null" || text == `""`:
		return ""
	case text == "false" || strings.HasPrefix(text, `"`):
		return "`" + strings.Trim(text, `"`) + "`"
	}
	return text
}

func anyOption(*taskspec.OptionInfo) bool { return true }
