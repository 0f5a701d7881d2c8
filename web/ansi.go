package web

import (
	"html/template"
	"strconv"
	"strings"

	"example.com/runner/internal/humanize"
)

// The output of a task is text for a terminal. The pages show the sixteen
// colours of a terminal and remove every other escape sequence.

// textStyle is the current style of a terminal.
type textStyle struct {
	fg, bg int     // 0 is the default colour, 1 to 8 are the normal colours, and 9 to 16 are the bright ones
	on     [5]bool // bold, dim, italic and underlined, by the parameter that turns each on
}

var styleClasses = [5]string{1: "bo", 2: "di", 3: "it", 4: "un"}

// class returns the CSS classes of this style, or "" for the default style.
func (k textStyle) class() string {
	var list []string
	if k.fg > 0 {
		list = append(list, "f"+strconv.Itoa(k.fg-1))
	}
	if k.bg > 0 {
		list = append(list, "b"+strconv.Itoa(k.bg-1))
	}
	for i, on := range k.on {
		if on {
			list = append(list, styleClasses[i])
		}
	}
	return strings.Join(list, " ")
}

// extendedColour returns the colour that the parameters after 38 or 48 choose, as the fields of textStyle count it, and how many
// parameters it used. Only the sixteen colours of a terminal have classes; all others are the default colour.
func extendedColour(list []string) (used, colour int) {
	if len(list) > 0 && list[0] == "2" {
		return 4, 0
	}
	if len(list) > 1 {
		if n, err := strconv.Atoi(list[1]); err == nil && 0 <= n && n < 16 {
			colour = n + 1
		}
	}
	return 2, colour
}

// set applies the parameters of an SGR sequence ("select graphic rendition").
func (k *textStyle) set(parameters string) {
	list := strings.FieldsFunc(parameters, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		*k = textStyle{}
		return
	}
	for i := 0; i < len(list); i++ {
		n, _ := strconv.Atoi(list[i])
		tens, digit, colour := n/10, n%10, &k.fg
		if tens == 4 || tens == 10 {
			colour = &k.bg
		}
		switch {
		case n <= 0:
			*k = textStyle{}
		case n <= 4:
			k.on[n] = true
		case n == 22:
			k.on[1], k.on[2] = false, false
		case n == 23 || n == 24:
			k.on[digit] = false
		case (tens == 3 || tens == 4) && digit == 8:
			used := 0
			used, *colour = extendedColour(list[i+1:])
			i += used
		case (tens == 3 || tens == 4) && digit == 9:
			*colour = 0
		case tens == 3 || tens == 4:
			*colour = digit + 1
		case (tens == 9 || tens == 10) && digit <= 7:
			*colour = digit + 9
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
		sgr, colours, rest := humanize.CutEscape(line[at:])
		if colours {
			k.set(sgr)
		}
		line = rest
	}
}
