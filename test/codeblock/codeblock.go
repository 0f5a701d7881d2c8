// Package codeblock finds the code blocks in Markdown pages, so that tests can
// run them.
package codeblock

import (
	"fmt"
	"os"
	"strings"
)

// Block is a code block in a Markdown page.
type Block struct {
	At   string // page and line at which the block begins
	Lang string // type of the block: the first word after the opening fence
	Text string
}

// File returns the name of the file that the first line of a Go block names. It
// returns an empty string if there is none.
func (b Block) File() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	if name, ok := strings.CutPrefix(first, "// "); ok && b.Lang == "go" && strings.HasSuffix(name, ".go") {
		return name
	}
	return ""
}

// Read returns the code blocks of a page in order.
func Read(page string) ([]Block, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}

	var list []Block
	inside := false
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		switch lang, fence := strings.CutPrefix(line, "```"); {
		case fence && !inside:
			inside = true
			list = append(list, Block{At: fmt.Sprintf("%s:%d", page, n), Lang: strings.TrimSpace(lang)})
		case fence:
			inside = false
		case inside:
			list[len(list)-1].Text += line
		}
	}

	return list, nil
}
