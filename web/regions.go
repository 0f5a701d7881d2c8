package web

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"example.com/runner/internal/pattern"
)

// The live regions of a page are the elements with the attribute data-live. An open page loads them again after a change. It sends the
// hashes of the regions that it shows, and the server then sends only the regions that differ.

// haveHeader is the request header in which an open page sends the hashes of the live regions that it shows.
const haveHeader = "Have"

// liveTag matches the start tag of a live region. Texts and attributes contain no < because the templates escape it.
var liveTag = pattern.Lazy(`<([a-z]+) [^<>]*\bid="([^"]*)"[^<>]*\bdata-live\b[^<>]*>|` +
	`<([a-z]+) [^<>]*\bdata-live\b[^<>]*\bid="([^"]*)"[^<>]*>`)

// changedRegions returns the text of a page without the regions that the browser already shows: those whose hashes are in the argument
// "have". An empty element stands for each of these regions. The text begins with the hashes of all regions.
func changedRegions(text []byte, have string) []byte {
	known := strings.Fields(have)
	var out bytes.Buffer
	var hashes []string
	for len(text) > 0 {
		at := liveTag().FindSubmatchIndex(text)
		if at == nil {
			break
		}
		name, id := group(text, at, 1)+group(text, at, 3), group(text, at, 2)+group(text, at, 4)
		end := elementEnd(text, at[0], name)
		sum := fnv.New64a()
		sum.Write(text[at[0]:end])
		hash := fmt.Sprintf("%x", sum.Sum64())
		hashes = append(hashes, id+"="+hash)
		out.Write(text[:at[0]])
		if slices.Contains(known, hash) {
			fmt.Fprintf(&out, `<%s id="%s" data-live data-same></%[1]s>`, name, id)
		} else {
			out.Write(text[at[0]:end])
		}
		text = text[end:]
	}
	out.Write(text)
	return append(fmt.Appendf(nil, `<meta name="have" content="%s">`, strings.Join(hashes, " ")), out.Bytes()...)
}

// group returns the text of group n of a match of a regular expression, or "" if that group has matched nothing.
func group(text []byte, at []int, n int) string {
	if at[2*n] < 0 {
		return ""
	}
	return string(text[at[2*n]:at[2*n+1]])
}

// elementEnd returns the position after the element that begins at position start.
func elementEnd(text []byte, start int, name string) int {
	begin, end := []byte("<"+name), []byte("</"+name+">")
	for depth, at := 0, start; ; {
		next := bytes.IndexByte(text[at:], '<')
		if next < 0 {
			return len(text)
		}
		at += next
		switch rest := text[at:]; {
		case bytes.HasPrefix(rest, end):
			if depth--; depth == 0 {
				return at + len(end)
			}
		case bytes.HasPrefix(rest, begin) && len(rest) > len(begin) && (rest[len(begin)] == ' ' || rest[len(begin)] == '>'):
			depth++
		}
		at++
	}
}
