package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// block is a code block of a page: its first word says what it is.
type block struct{ at, lang, text string }

// file is the name of the file that a block of Go says it is; empty: it says none.
func (b block) file() string {
	first, _, _ := strings.Cut(b.text, "\n")
	if name, ok := strings.CutPrefix(first, "// "); ok && b.lang == "go" && strings.HasSuffix(name, ".go") {
		return name
	}
	return ""
}

func readBlocks(page string) ([]block, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var blocks []block
	inside := false
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		switch lang, fence := strings.CutPrefix(line, "```"); {
		case fence && !inside:
			inside = true
			blocks = append(blocks, block{at: fmt.Sprintf("%s:%d", page, n), lang: strings.TrimSpace(lang)})
		case fence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks, nil
}

// writeBlock is the script command "block PAGE LANG N FILE": it writes the Nth block of a language on a page, from 1, to a file.
func writeBlock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: block PAGE LANG N FILE")
	}
	blocks, err := readBlocks(args[0])
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	for _, b := range blocks {
		if b.lang != args[1] {
			continue
		}
		if n--; n == 0 {
			ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(b.text), 0o600))
			return
		}
	}
	ts.Fatalf("%s has no such block of %s", args[0], args[1])
}
