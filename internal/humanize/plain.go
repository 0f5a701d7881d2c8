package humanize

import (
	"bytes"
	"strings"
	"unicode"
)

// LastText returns the last line of an output that isn't blank, as plain text
// cut to limit bytes.
func LastText(output []byte, limit int) string {
	for len(output) > 0 {
		at := bytes.LastIndexByte(output, '\n')
		line := bytes.TrimRight(output[at+1:], "\r")
		output = output[:max(at, 0)]
		if text := plain(string(line[bytes.LastIndexByte(line, '\r')+1:])); text != "" {
			return Cut(text, limit)
		}
	}
	return ""
}

// plain returns a line as valid UTF-8, without escape sequences, control
// characters and blanks at both ends.
func plain(line string) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, StripEscapes(line))
	return strings.TrimSpace(strings.ToValidUTF8(line, "\ufffd"))
}

// StripEscapes removes a terminal's escape sequences from a line.
func StripEscapes(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, 0x1b)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		_, _, text = CutEscape(text[at:])
	}
}

// CutEscape removes an escape sequence from the start of a line, which begins
// with ESC. sgr are the sequence's parameters, and colours reports whether it
// sets colours. Of a sequence without an end, it removes only the first
// characters.
func CutEscape(line string) (sgr string, colours bool, rest string) {
	if len(line) < 2 {
		return "", false, line[1:]
	}

	switch c, text := line[1], line[2:]; {
	case c == '[':
		end := strings.IndexFunc(text, func(r rune) bool { return r < 0x20 || r > 0x3f })
		if end < 0 || text[end] < 0x40 || text[end] > 0x7e {
			return "", false, text
		}
		sgr = text[:end]
		return sgr, text[end] == 'm' && strings.Trim(sgr, "0123456789;:") == "", text[end+1:]
	case strings.IndexByte("]P_^X", c) >= 0:
		return "", false, afterText(text)
	case c >= 0x20 && c <= 0x2f && len(line) > 2:
		return "", false, line[3:]
	case c >= 0x30 && c <= 0x7e:
		return "", false, text
	}

	return "", false, line[1:]
}

// afterText returns what follows the text of an escape sequence. The text ends
// with BEL or ST.
func afterText(text string) string {
	for i := range len(text) {
		if text[i] == 7 {
			return text[i+1:]
		}
		if rest, ok := strings.CutPrefix(text[i:], "\x1b\\"); ok {
			return rest
		}
	}
	return ""
}
