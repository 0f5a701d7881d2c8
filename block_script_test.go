package main

import (
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/runner/test/codeblock"
)

// writeBlock implements the command "block PAGE LANG N FILE" of the test
// scripts. It copies a code block from a page to a file. N counts only the
// blocks of language LANG, from 1.
func writeBlock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: block PAGE LANG N FILE")
	}
	list, err := codeblock.Read(args[0])
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	for _, b := range list {
		if b.Lang != args[1] {
			continue
		}
		if n--; n == 0 {
			ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(b.Text), 0o600))
			return
		}
	}
	ts.Fatalf("%s has no such block of %s", args[0], args[1])
}
