package search

import (
	"slices"
	"testing"

	"example.com/runner/internal/testkit"
)

func TestCorrectReplacesMisspeltSelectorsStatesAndNames(t *testing.T) {
	names := Names{KeyQueue: {"media", "mail"}, KeyJob: {"command", "email.send"}, KeyWorker: {"web1:811"}, KeySchedule: {"backup"}}
	for text, want := range map[string]string{
		"stat:faild":                    "state:failed",
		"state:Failed":                  "state:failed",
		"quue:media":                    "queue:media",
		"queue:meda state:faild x y":    `queue:media state:failed "x y"`,
		"state:faild,compelted":         "state:failed,completed",
		"job:email.sned":                "job:email.send",
		"schedule:bakcup":               "schedule:backup",
		`worker:web1:812 "no space"`:    `worker:web1:811 "no space"`,
		"state:failed queue:media":      "",
		"queue:reports":                 "",
		"color:red":                     "",
		"stat:faild label:":             "",
		`stat:faild "a`:                 "",
		"":                              "",
		"label:meda lane:mail meta:a=b": "",
	} {
		testkit.Equal(t, text, Correct(text, names), want)
	}
}

func TestWordsCompleteEverySelector(t *testing.T) {
	words := Names{KeyQueue: {"media"}, KeyLabel: {"night run"}}.Words()
	for _, want := range []string{"state:failed", "state:unfinished", "queue:media", `label:"night run"`, "since:1d", "until:", "lane:",
		"batch:", "meta:"} {
		if !slices.Contains(words, want) {
			t.Errorf("got words %q, want %q among them", words, want)
		}
	}
}
