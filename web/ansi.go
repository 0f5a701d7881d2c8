package web

import (
	"html/template"
	"strconv"
	"strings"

	"example.com/runner/internal/humanize"
)

// The output of a task is text for a terminal. The pages show the sixteen colours of a terminal and remove every other
// escape sequence.

// textStyle is the current style of a terminal.
type textStyle struct {
	fg, bg                   int // 0 for the default, 1 to 8 for the normal colours, 9 to 16 for the bright ones
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

// cutEscape removes an escape sequence from the start of a line that begins with ESC. It returns the parameters of the
// sequence and whether the sequence sets colours. If the sequence has no end, cutEscape removes only its first
// characters.
func cutEscape(line string) (sgr string, colours bool, rest string) {
	if len(line) < 2 {
		return "", false, line[1:]
	}
	switch c := line[1]; {
	case c == '[':
		for i := 2; i < len(line); i++ {
			if b := line[i]; b >= 0x40 && b <= 0x7e {
				return line[2:i], b == 'm' && strings.Trim(line[2:i], "0123456789;:") == "", line[i+1:]
			} else if b < 0x20 || b > 0x7e {
				break
			}
		}
		return "", false, line[2:]
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X': // a string, which ends with BEL or ST
		for i := 2; i < len(line); i++ {
			if line[i] == 7 {
				return "", false, line[i+1:]
			}
			if line[i] == 0x1b && i+1 < len(line) && line[i+1] == '\\' {
				return "", false, line[i+2:]
			}
		}
		return "", false, ""
	case c >= 0x20 && c <= 0x2f && len(line) > 2:
		return "", false, line[3:]
	case c >= 0x30 && c <= 0x7e:
		return "", false, line[2:]
	}
	return "", false, line[1:]
}

// html returns a line, without its newline, as HTML. It changes k to the style at the end of the line, which applies to
// the next line, too.
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
		sgr, colours, rest := cutEscape(line[at:])
		if colours {
			k.set(sgr)
		}
		line = rest
	}
}

// stripEscapes returns a line without its escape sequences.
func stripEscapes(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, 0x1b)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		_, _, text = cutEscape(text[at:])
	}
}
