package main

import (
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/cli"
)

func TestComplete(t *testing.T) {
	// Without environment variables, the completion finds no database.
	a := &cli.App{Commands: entries, Now: time.Now, Getenv: func(string) string { return "" }}
	for line, want := range map[string]string{
		"": "run enqueue work schedule status list show logs wait cancel retry edit delete pause resume limit " +
			"doctor backup restore move serve service fence completion",
		"c":                            "cancel completion",
		"--db x.db ca":                 "cancel",
		"--db ":                        "",
		"ls --bu":                      "--busy-timeout",
		"ls --sx":                      "",
		"ls --st":                      "--state",
		"list --state ":                "scheduled pending blocked running retrying completed failed cancelled unfinished finished",
		"list -s fai":                  "failed",
		"list -s failed,ca":            "failed,cancelled",
		"list -sfailed ca":             "",
		"list --state=failed,un":       "--state=failed,unfinished",
		"list --color=":                "--color=auto --color=always --color=never",
		"list --color a":               "auto always",
		"list --label --st":            "", // the word at the cursor is the value of --label, for which there are no suggestions
		"list --nosuch x --st":         "--state",
		"list --nosuch=":               "",
		"list 7 --st":                  "--state",
		"list -- --st":                 "",
		"work --log-f":                 "--log-format",
		"work --log-format ":           "auto text json",
		"work --log-level=w":           "--log-level=warn",
		"completion ":                  "bash zsh fish",
		"completion b":                 "bash",
		"cancel --no":                  "--now --no-wait",
		"enqueue --wai":                "--wait --wait-timeout",
		"enqueue backup.sh --wai":      "",
		"enqueue -- --wai":             "",
		"enqueue -- ":                  "",
		"enqueue --label enqueue --wa": "--wait --wait-timeout",
		"nosuch --st":                  "",
		"--hel":                        "--help",
	} {
		var got []string
		for _, s := range a.Complete(t.Context(), strings.Split(line, " ")) {
			got = append(got, s.Word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
