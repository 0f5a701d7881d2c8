package ui

import (
	"math"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
)

const (
	Gap           = "  "
	minLastColumn = 20 // minimum width of the last column; if there is less space, other columns are left out
)

// column is a column of a table. Its first text is the heading.
type column struct {
	Member
	texts []string
	width int // in cells of the terminal, as all widths
}

// Table prints records as a table. Columns without a text are left out. The
// last column is cut at the terminal's edge; if it would become too narrow,
// other columns are left out, too. With noCut, lines may be wider than the
// terminal.
func (p *Printer) Table(records []Record, noCut bool) {
	to := p.Stdout
	if noCut {
		to.Width = math.MaxInt
	}
	columns := fit(newColumns(records, to.Width), to.Width)
	for row := range len(records) + 1 {
		to.Colour = p.Stdout.Colour && row > 0
		p.Print(line(columns, row, to))
	}
}

// section prints a table after a blank line and lead, if it has rows.
func (p *Printer) section(lead string, records []Record) {
	if len(records) > 0 {
		p.Print("\n" + lead)
		p.Table(records, false)
	}
}

func newColumns(records []Record, width int) (columns []column) {
	for i, m := range records[0] {
		if m.Name == "" {
			continue
		}

		usual := true
		c := column{Member: m, texts: []string{strings.TrimRight(m.Name, " ")}}
		for _, r := range records {
			text := humanize.Safe(r[i].text())
			if m.Narrow {
				text = Cut(text, max(width/3, 8))
			}
			usual = usual && text == m.Usual
			c.texts = append(c.texts, text)
		}

		if !usual {
			c.width = Cells(slices.MaxFunc(c.texts, func(a, b string) int { return Cells(a) - Cells(b) }))
			columns = append(columns, c)
		}
	}
	return columns
}

// fit leaves out columns until the rest fits.
func fit(columns []column, width int) []column {
	for {
		need, dropped := 0, -1
		for i, c := range columns {
			if i == len(columns)-1 {
				need += min(c.width, minLastColumn)
			} else {
				need += c.width + len(Gap)
			}
			if c.Drop > 0 && (dropped < 0 || c.Drop < columns[dropped].Drop) {
				dropped = i
			}
		}

		if need <= width || dropped < 0 {
			return columns
		}

		columns = slices.Delete(columns, dropped, dropped+1)
	}
}

// line returns a row as a line of text. It cuts texts that are too long, and
// then adds colours.
func line(columns []column, row int, to Stream) string {
	var b strings.Builder
	left := to.Width
	pending := 0 // number of blanks before the next text
	for _, c := range columns {
		text := Cut(c.texts[row], left)
		blanks := max(c.width-Cells(text), 0)
		if c.Right {
			pending += blanks
			text = Cut(text, left-blanks)
		}

		if text != "" {
			b.WriteString(strings.Repeat(" ", pending))
			pending = 0
			if c.Paint != nil {
				text = to.Paint(c.Paint(c.texts[row]), text)
			}
			b.WriteString(text)
		}

		if !c.Right {
			pending += blanks
		}

		pending += len(Gap)
		left = max(left-c.width-len(Gap), 0)
	}

	return b.String() + "\n"
}
