package ui

import (
	"bytes"
	"unicode/utf8"

	"example.com/runner/internal/humanize"
)

// Shield escapes what could control a terminal in a command's output. It keeps
// newlines, tabs, carriage returns (progress bars), colours and "erase to the
// end of the line", which goes with them in grep. Everything else (window
// titles, the clipboard, cursor moves) becomes visible: \x1b]52;….
type Shield struct {
	rest []byte // start of a character or of a colour that the next piece may complete
}

// longestColour is the length from which on a sequence counts as no colour.
const longestColour = 64

// Escape escapes the next piece of the output. It keeps back an incomplete
// character or colour at the end of the piece.
func (s *Shield) Escape(piece []byte) []byte {
	text := append(s.rest, piece...)
	s.rest = nil
	var safe bytes.Buffer
	for len(text) > 0 {
		n := plainLength(text)
		safe.Write(text[:n])
		if text = text[n:]; len(text) == 0 {
			break
		}

		keep, complete := colour(text)
		switch {
		case !complete, !utf8.FullRune(text):
			s.rest = bytes.Clone(text)
			return safe.Bytes()
		case keep > 0:
			safe.Write(text[:keep])
			text = text[keep:]
		default:
			_, size := utf8.DecodeRune(text)
			safe.WriteString(humanize.Safe(string(text[:size])))
			text = text[size:]
		}
	}

	return safe.Bytes()
}

// End returns what Escape has kept back, escaped.
func (s *Shield) End() []byte {
	rest := humanize.Safe(string(s.rest))
	s.rest = nil
	return []byte(rest)
}

// plainLength returns how many bytes at the start of a text need no escape.
func plainLength(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if humanize.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return i
		}
		i += size
	}
	return len(text)
}

// colour returns the length of the colour at the start of a text, or 0.
// complete is false if the text ends within what may be a colour.
func colour(text []byte) (length int, complete bool) {
	for i, b := range text {
		switch {
		case i >= longestColour:
			return 0, true
		case i == 0 && b == 0x1b, i == 1 && b == '[', i > 1 && (b >= '0' && b <= '9' || b == ';' || b == ':'):
		case i > 1 && (b == 'm' || b == 'K'):
			return i + 1, true
		default:
			return 0, true
		}
	}
	return 0, false
}
