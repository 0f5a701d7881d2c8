package ui

import (
	"strings"
	"testing"

	"example.com/runner/internal/humanize"
	"example.com/runner/test/testkit"
)

func TestTableFits(t *testing.T) {
	row := func(id, state, queue, try, age, took, note, job string) Record {
		return Record{
			{Name: "ID", Text: id, Right: true},
			{Name: "STATE", Text: state, Paint: StateColour},
			{Name: "QUEUE", Text: queue, Drop: 2},
			{Name: "TRY", Text: try, Drop: 1},
			{Name: "AGE", Text: age, Right: true, Drop: 3},
			{Name: "TIME", Text: took, Right: true, Drop: 4},
			{Name: "NOTE", Text: note, Drop: 5},
			{Name: "JOB", Text: job},
		}
	}
	rows := []Record{
		row("1042", "running", "default", "1/1", "12s", "11s", "", "backup.sh --full /srv"),
		row("1040", "retrying", "default", "2/3", "9m", "", "in 48s", "curl -fsS https://example.com/hook"),
		row("1039", "pending", "media", "0/5", "11m", "", "", "映画を変換する 👩‍👩‍👧 ffmpeg -i 入力.mov 出力.mp4"),
		row("1038", "failed", "mail", "1/1", "1h", "1h0m", "", "x\x1b]0;title\a \u202egnp"),
	}
	for _, width := range []int{10, 40, 60, 80, 120, 200} {
		for _, colour := range []bool{false, true} {
			p, out, _ := bufferPrinter(width)
			p.Stdout.Colour = colour
			p.Table(rows, false)
			p.Flush()
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				for _, c := range []string{"31", "32", "33", "34", "2", "0"} {
					line = strings.ReplaceAll(line, "\x1b["+c+"m", "")
				}
				if Cells(line) > width || strings.ContainsFunc(line, humanize.IsControl) || strings.HasSuffix(line, " ") {
					t.Errorf("width %d: got %d cells in %q, want no more, no control characters, no blank at the end", width,
						Cells(line), line)
				}
			}
		}
	}
	p, out, _ := bufferPrinter(80)
	p.Table(rows[:2], false)
	p.Flush()
	testkit.Equal(t, "stdout", out.String(), `  ID  STATE     QUEUE    TRY  AGE  TIME  NOTE    JOB
1042  running   default  1/1  12s   11s          backup.sh --full /srv
1040  retrying  default  2/3   9m        in 48s  curl -fsS https://example.com/…
`)
	p, out, _ = bufferPrinter(40)
	p.Table(rows[:2], false)
	p.Flush()
	testkit.Equal(t, "stdout", out.String(), `  ID  STATE     JOB
1042  running   backup.sh --full /srv
1040  retrying  curl -fsS https://examp…
`)
	p, out, _ = bufferPrinter(20)
	p.Table(rows[1:2], true)
	p.Flush()
	testkit.Equal(t, "table without a limit", out.String(), "  ID  STATE     QUEUE    TRY  AGE  NOTE    JOB\n"+
		"1040  retrying  default  2/3   9m  in 48s  curl -fsS https://example.com/hook\n")
}
