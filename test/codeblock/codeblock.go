// Package codeblock reads the code blocks of the pages in docs. Tests of the pages run them.
package codeblock

import (
	"fmt"
	"os"
	"strings"
)

// Block is a code block of a page.
type Block struct {
	At   string // page and line of its first fence
	Lang string // first word behind the fence; says what the block is
	Text string
}

// File returns the name of the file that a block of Go says it is, or nothing if it says none.
func (b Block) File() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	if name, ok := strings.CutPrefix(first, "// "); ok && b.Lang == "go" && strings.HasSuffix(name, ".go") {
		return name
	}
	return ""
}

// Read returns the blocks of a page in their order.
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
