package ui

import (
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
)

// Column is a column of a Table.
type Column struct {
	Name       string
	Usual      string              // the column is left out if all its texts are this one
	AlignRight bool                // whether texts are at the right edge of the column
	DropOrder  int                 // on a narrow terminal, columns are left out in this order, lowest number first; 0 means never
	Paint      func(string) Colour // returns the colour for a text in this column
}

// Table is a table for people. Columns without a text are left out. The last
// column is cut at the edge of the terminal. If it would become too narrow, other
// columns are left out, too. All widths are in cells of the terminal.
type Table struct {
	Columns []Column
	Rows    [][]string
	NoCut   bool // whether lines may be wider than the terminal
}

const (
	Gap           = "  "
	minLastColumn = 20 // minimum width of the last column; if there is less space, other columns are left out
)

// Table prints t on stdout.
func (p *Printer) Table(t Table) {
	shown, widths := t.layout(p.Stdout.Width)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	p.Print(t.line(names, shown, widths, Stream{Width: p.Stdout.Width}))
	for _, row := range t.Rows {
		p.Print(t.line(row, shown, widths, p.Stdout))
	}
}

// section prints a table after a blank line and lead, if it has rows.
func (p *Printer) section(lead string, t Table) {
	if len(t.Rows) > 0 {
		p.Print("\n" + lead)
		p.Table(t)
	}
}

// layout returns the indexes of the columns to show, and the widths of all columns.
func (t Table) layout(width int) (shown []int, widths []int) {
	widths = make([]int, len(t.Columns))
	for i, c := range t.Columns {
		usual := true
		for _, row := range t.Rows {
			widths[i] = max(widths[i], Cells(humanize.Safe(row[i])))
			usual = usual && row[i] == c.Usual
		}
		if usual && len(t.Rows) > 0 {
			continue
		}
		widths[i] = max(widths[i], Cells(c.Name))
		shown = append(shown, i)
	}
	if t.NoCut || len(shown) == 0 {
		return shown, widths
	}
	for {
		last := shown[len(shown)-1]
		need := min(widths[last], minLastColumn)
		for _, i := range shown[:len(shown)-1] {
			need += widths[i] + len(Gap)
		}
		dropped := -1
		for at, i := range shown {
			if t.Columns[i].DropOrder > 0 && (dropped < 0 || t.Columns[i].DropOrder < t.Columns[shown[dropped]].DropOrder) {
				dropped = at
			}
		}
		if need <= width || dropped < 0 {
			return shown, widths
		}
		shown = slices.Delete(shown, dropped, dropped+1)
	}
}

// line returns a row as a line of text. It cuts texts that are too long, and then adds colours.
func (t Table) line(row []string, shown, widths []int, to Stream) string {
	var b strings.Builder
	left := to.Width
	pending := 0 // number of blanks before the next text
	for at, i := range shown {
		text := humanize.Safe(row[i])
		if !t.NoCut {
			text = Cut(text, left)
		}
		blanks := max(widths[i]-Cells(text), 0)
		if t.Columns[i].AlignRight {
			pending += blanks
			if !t.NoCut {
				text = Cut(text, left-blanks)
			}
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pending))
			pending = 0
			if paint := t.Columns[i].Paint; paint != nil {
				b.WriteString(to.Paint(paint(row[i]), text))
			} else {
				b.WriteString(text)
			}
		}
		if !t.Columns[i].AlignRight {
			pending += blanks
		}
		if at < len(shown)-1 {
			pending += len(Gap)
		}
		left = max(left-widths[i]-len(Gap), 0)
	}
	return b.String() + "\n"
}
