package picture

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

const (
	terminalLine   = 18  // height of a line
	terminalLetter = 8.0 // width of a letter
)

const terminalStyle = `<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d1d7e0; white-space: pre }
.typed { fill: #ffffff; font-weight: 600 }
.c31 { fill: #ff8182 } .c32 { fill: #4ac26b } .c33 { fill: #eac54f } .c36 { fill: #76e3ea }
.c1 { font-weight: 600 } .c2 { fill: #9198a1 }
</style>
`

var colour = regexp.MustCompile(`\x1b\[(\d*)m`)

// Terminal draws lines of a terminal as an SVG. A line that begins with "$ " is
// a command that a user typed. Escape sequences for colours may have only one
// number.
func Terminal(title string, lines []string) string {
	columns := 0
	var text strings.Builder
	for i, line := range lines {
		columns = max(columns, len([]rune(colour.ReplaceAllString(line, ""))))
		class := ""
		if strings.HasPrefix(line, "$ ") {
			class = ` class="typed"`
		}
		fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\"%s>%s</text>\n",
			margin+4, margin+(i+1)*terminalLine-4, class, spans(line))
	}

	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" role=\"img\">\n<title>%s</title>\n",
		float64(columns)*terminalLetter+2*margin+8, len(lines)*terminalLine+2*margin, html.EscapeString(title)) + terminalStyle +
		"<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#151b23\"/>\n" + text.String() + "</svg>\n"
}

// spans returns a line as SVG text, with a tspan for each coloured part.
func spans(line string) string {
	var b strings.Builder
	for open := false; ; {
		at := colour.FindStringSubmatchIndex(line)
		if at == nil {
			b.WriteString(html.EscapeString(line))
			return b.String()
		}

		b.WriteString(html.EscapeString(line[:at[0]]))
		number := line[at[2]:at[3]]
		line = line[at[1]:]
		if open {
			b.WriteString("</tspan>")
		}
		if open = number != "" && number != "0"; open {
			fmt.Fprintf(&b, "<tspan class=\"c%s\">", number)
		}
	}
}
