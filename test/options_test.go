package test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// TestOptionTables compares the rows of the option tables in docs with jobs.OptionList. UPDATE_DOCS=1 go test ./test -run
// TestOptionTables writes the rows.
func TestOptionTables(t *testing.T) {
	for _, table := range []struct {
		page, heading string
		without       []string // keys of options that the table does not have
		only          func(*jobs.OptionInfo) bool
		row           func(*jobs.OptionInfo) string
	}{
		{"docs/json.md", "\n## task\n", []string{"in", "expires_in", "input"}, anyOption, recordRow},
		{"docs/json.md", "\n## task of a schedule\n", []string{"input"}, func(o *jobs.OptionInfo) bool { return !o.OneTask }, recordRow},
		{"docs/sql.md", "\n### Columns of `enqueue`\n", []string{"in", "expires_in", "path"}, anyOption, columnRow},
		{"docs/file-format.md", "\n## `options`\n", nil, (*jobs.OptionInfo).Stored, storedRow},
	} {
		page := readFile(t, table.page)
		above, rest, found := strings.Cut(page, table.heading)
		if !found {
			t.Fatalf("%s: got no heading %q, want it", table.page, table.heading)
		}
		body, below, _ := strings.Cut(rest, "\n#")
		previous := "args"
		for i := range jobs.OptionList() {
			o := &jobs.OptionList()[i]
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
			t.Errorf("%s, %q: got other rows than those of jobs.OptionList; to write them: make docs",
				table.page, table.heading)
		}
	}
}

// setRow replaces the row of a key in a table, or adds the row after the row of the key previous.
func setRow(table, key, previous, row string) string {
	old := regexp.MustCompile("(?m)^\\| `" + key + "` \\|.*$")
	if old.MatchString(table) {
		return old.ReplaceAllLiteralString(table, row)
	}
	behind := regexp.MustCompile("(?m)^\\| `" + previous + "` \\|.*$")
	return behind.ReplaceAllStringFunc(table, func(above string) string { return above + "\n" + row })
}

// meaning returns the text of an option for docs.
func meaning(o *jobs.OptionInfo) string {
	text := o.Doc
	if text == "" {
		text = o.Help
	}
	for i, word := range o.Words {
		text += []string{": ", ", ", " or "}[min(i, 1)+i/(len(o.Words)-1)] + "`" + word + "`"
	}
	return text
}

// recordRow returns the row of an option in the table of a JSON record.
func recordRow(o *jobs.OptionInfo) string { return fmt.Sprintf("| `%s` | %s |", o.Key, meaning(o)) }

// columnRow returns the row of an option in the table of the view enqueue.
func columnRow(o *jobs.OptionInfo) string {
	usual := storedDefault(o)
	switch {
	case o.Zero == "now":
		usual = o.Zero
	case usual == "":
		usual = "NULL"
	}
	return fmt.Sprintf("| `%s` | %s | %s |", o.Key, usual, meaning(o))
}

// storedRow returns the row of an option in the table of the stored form.
func storedRow(o *jobs.OptionInfo) string {
	usual := storedDefault(o)
	switch {
	case o.Key == "retry_on":
		usual = "all exit codes"
	case usual == "":
		usual = "none"
	}
	return fmt.Sprintf("| `%s` | %s |", o.Key, usual)
}

// storedDefault returns the default of an option as the database stores it, or an empty string if there is none.
func storedDefault(o *jobs.OptionInfo) string {
	if o.Zero != "" {
		return ""
	}
	switch value := o.Default().(type) {
	case *string:
		if *value != "" {
			return "`" + *value + "`"
		}
	case *int:
		return fmt.Sprint(*value)
	case *int64:
		return fmt.Sprint(*value)
	case *time.Duration:
		return fmt.Sprint(value.Milliseconds())
	}
	return ""
}

func anyOption(*jobs.OptionInfo) bool { return true }
