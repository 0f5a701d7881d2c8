package web

import (
	"html/template"
	"strconv"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/lines"
)

// The output of a task is text for a terminal. The pages show the sixteen colours of a terminal and remove every other
// escape sequence.

// textStyle is the current style of a terminal.
type textStyle struct {
	fg, bg                   int // 0 is the default colour, 1 to 8 are the normal colours, and 9 to 16 are the bright ones
	bold, dim, italic, under bool
}

// class returns the CSS classes of this style, or "" for the default style.
func (k textStyle) class() string {
	var list []string
	if k.fg > 0 {
		list = append(list, "f"+strconv.Itoa(k.fg-1))
	}
	if k.bg > 0 {
		list = append(list, "b"+strconv.Itoa(k.bg-1))
	}
	for _, on := range []struct {
		on   bool
		name string
	}{{k.bold, "bo"}, {k.dim, "di"}, {k.italic, "it"}, {k.under, "un"}} {
		if on.on {
			list = append(list, on.name)
		}
	}
	return strings.Join(list, " ")
}

// set applies the parameters of an SGR sequence ("select graphic rendition"). It ignores colours beyond the first
// sixteen.
func (k *textStyle) set(parameters string) {
	list := strings.FieldsFunc(parameters, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		*k = textStyle{}
		return
	}
	for i := 0; i < len(list); i++ {
		n, _ := strconv.Atoi(list[i])
		switch {
		case n == 0:
			*k = textStyle{}
		case n == 1:
			k.bold = true
		case n == 2:
			k.dim = true
		case n == 3:
			k.italic = true
		case n == 4:
			k.under = true
		case n == 22:
			k.bold, k.dim = false, false
		case n == 23:
			k.italic = false
		case n == 24:
			k.under = false
		case 30 <= n && n <= 37:
			k.fg = n - 29
		case 90 <= n && n <= 97:
			k.fg = n - 81
		case n == 39:
			k.fg = 0
		case 40 <= n && n <= 47:
			k.bg = n - 39
		case 100 <= n && n <= 107:
			k.bg = n - 91
		case n == 49:
			k.bg = 0
		case n == 38 || n == 48:
			skip, colour := 2, 0
			if i+1 < len(list) && list[i+1] == "2" {
				skip = 4
			} else if i+2 < len(list) {
				if c, err := strconv.Atoi(list[i+2]); err == nil && c >= 0 && c < 16 {
					colour = c + 1
				}
			}
			if i += skip; n == 38 {
				k.fg = colour
			} else {
				k.bg = colour
			}
		}
	}
}

// html returns a line, without its newline, as HTML. It changes the style k to the style at the end of the line, which applies to the next
// line, too.
func (k *textStyle) html(line string) template.HTML {
	line = strings.TrimRight(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:] // a terminal overwrites the text before a carriage return
	var b strings.Builder
	write := func(text string) {
		if text == "" {
			return
		}
		text = template.HTMLEscapeString(humanize.SafeLines(text))
		if class := k.class(); class != "" {
			b.WriteString(`<span class="` + class + `">` + text + `</span>`)
			return
		}
		b.WriteString(text)
	}
	for {
		at := strings.IndexByte(line, 0x1b)
		if at < 0 {
			write(line)
			return template.HTML(b.String())
		}
		write(line[:at])
		sgr, colours, rest := lines.CutEscape(line[at:])
		if colours {
			k.set(sgr)
		}
		line = rest
	}
}
