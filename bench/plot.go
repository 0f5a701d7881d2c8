package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// plots writes a bar chart for each table that compares systems.
func (r *report) plots(dir string) error {
	for _, t := range r.Tables {
		if !t.plotted() {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, t.Name+".svg"), []byte(t.svg()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// plotted reports whether a table gets a bar chart: it must compare systems and
// have few rows.
func (t *table) plotted() bool { return len(t.Rows) > 1 && len(t.Rows) <= 16 }

const (
	plotWidth = 720
	labelEnd  = 260
	barEnd    = 640
	lineHigh  = 26
)

// svg draws a horizontal bar for each system. The colours are legible on a
// white and on a black page.
func (t *table) svg() string {
	most := 0.0
	for _, row := range t.Rows {
		most = math.Max(most, row.Median)
	}

	high := 44 + lineHigh*len(t.Rows)
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
			`font-family="system-ui, sans-serif" font-size="13">`+"\n",
		plotWidth, high, plotWidth, high)
	direction := "more is better"
	if t.Low {
		direction = "less is better"
	}

	b.WriteString(`<style>text{fill:#57606a}.bar{fill:#8c959f}.own{fill:#0969da}` +
		`@media (prefers-color-scheme:dark){text{fill:#adbac7}.own{fill:#539bf5}}</style>` + "\n")
	fmt.Fprintf(&b, `<text x="8" y="20" font-weight="600">%s</text><text x="%d" y="20" text-anchor="end" font-size="12">%s; %s</text>`+"\n",
		html.EscapeString(t.Title), plotWidth-8, html.EscapeString(t.unit()), direction)
	for i, row := range t.Rows {
		y := 36 + lineHigh*i
		class := "bar"
		if strings.HasPrefix(row.System, own) {
			class = "own"
		}

		width := math.Max(1, row.Median/most*(barEnd-labelEnd))
		fmt.Fprintf(&b,
			`<text x="%d" y="%d" text-anchor="end">%s</text>`+
				`<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/><text x="%.1f" y="%d">%s</text>`+"\n",
			labelEnd-8, y+14, html.EscapeString(row.System), class, labelEnd, y, width, lineHigh-8, labelEnd+width+6, y+14,
			number(row.Median))
	}

	b.WriteString("</svg>\n")
	return b.String()
}
