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
	case c == ']' || c == 'P' || c == '_' || c == '^' || c == 'X': // these sequences contain a text, which ends with BEL or ST
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
