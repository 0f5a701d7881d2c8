//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func mayMount() bool { return false }

func mountTmpfs(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("not on this system") }

func remount(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("not on this system") }
