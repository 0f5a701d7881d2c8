package main

import (
	"example.com/runner/internal/humanize"
	"slices"
	"strings"
)

// column is a column of a table for a terminal.
type column struct {
	name   string
	right  bool                // align to the right
	leaves int                 // when the width is too small, the column with the lowest number leaves first; 0 never does
	paint  func(string) colour // by what the cell says
}

// table is drawn for people. Empty columns are left out; the last one is cut at the edge of the terminal, and before that
// becomes too hard, columns leave. Width is counted in cells.
type table struct {
	columns  []column
	rows     [][]string
	headless bool // no line of names
	long     bool // let lines be longer than the terminal
}

const (
	gap      = "  "
	lastLeft = 20 // columns leave before the last one has less than this
)

// table prints t on stdout.
func (p *printer) table(t table) {
	shown, widths := t.layout(p.out.width)
	if !t.headless {
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.name
		}
		p.print(t.line(names, shown, widths, stream{width: p.out.width}))
	}
	for _, row := range t.rows {
		p.print(t.line(row, shown, widths, p.out))
	}
}

// layout decides which columns are shown and how wide they are.
func (t table) layout(width int) (shown []int, widths []int) {
	widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		for _, row := range t.rows {
			widths[i] = max(widths[i], cells(humanize.Safe(row[i])))
		}
		if widths[i] == 0 && len(t.rows) > 0 {
			continue
		}
		if !t.headless {
			widths[i] = max(widths[i], cells(c.name))
		}
		shown = append(shown, i)
	}
	if t.long || len(shown) == 0 {
		return shown, widths
	}
	for {
		last := shown[len(shown)-1]
		need := min(widths[last], lastLeft)
		for _, i := range shown[:len(shown)-1] {
			need += widths[i] + len(gap)
		}
		leaver := -1
		for at, i := range shown {
			if t.columns[i].leaves > 0 && (leaver < 0 || t.columns[i].leaves < t.columns[shown[leaver]].leaves) {
				leaver = at
			}
		}
		if need <= width || leaver < 0 {
			return shown, widths
		}
		shown = slices.Delete(shown, leaver, leaver+1)
	}
}

// line draws the shown cells of a row. What does not fit is cut, the last cell first; colour comes after the cutting.
func (t table) line(row []string, shown, widths []int, to stream) string {
	var b strings.Builder
	left := to.width
	pending := 0 // blanks that are written only if something follows
	for at, i := range shown {
		text := humanize.Safe(row[i])
		if !t.long {
			text = cut(text, left)
		}
		blanks := max(widths[i]-cells(text), 0)
		if t.columns[i].right {
			pending += blanks
			if !t.long {
				text = cut(text, left-blanks)
			}
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pending))
			pending = 0
			if paint := t.columns[i].paint; paint != nil {
				b.WriteString(to.paint(paint(row[i]), text))
			} else {
				b.WriteString(text)
			}
		}
		if !t.columns[i].right {
			pending += blanks
		}
		if at < len(shown)-1 {
			pending += len(gap)
		}
		left = max(left-widths[i]-len(gap), 0)
	}
	return b.String() + "\n"
}
