package taskspec

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/runner/jobs"
)

type message struct {
	To    string
	Count int64
	Tags  []string          `json:",omitempty"`
	Extra map[string]string `json:",omitempty"`
}

func randomMessage(t *rapid.T) message {
	m := message{To: strings.ToValidUTF8(rapid.String().Draw(t, "to"), "?"), Count: rapid.Int64().Draw(t, "count")}
	m.Tags = append(m.Tags, rapid.SliceOf(rapid.StringN(0, 9, -1)).Draw(t, "tags")...)
	return m
}

func TestArgsAndResultSurviveRoundTrip(t *testing.T) {
	echo := jobs.DefineResult[message, message]("echo")
	handler := echo.Handler(func(_ context.Context, m message) (message, error) { return m, nil })
	rapid.Check(t, func(t *rapid.T) {
		in := randomMessage(t)
		spec := echo.With(in)
		if err := Validate(&spec); err != nil {
			t.Fatal(err)
		}
		task := jobs.Task{Job: spec.Job, Args: spec.Args, State: jobs.Running}
		result, err := handler.Run(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		task.State, task.Result = jobs.Completed, result
		out, err := echo.Result(task, nil)
		want, _ := json.Marshal(in)
		if got, _ := json.Marshal(out); err != nil || string(got) != string(want) {
			t.Fatalf("got result %+v and error %v, want %+v", out, err, in)
		}
	})
}
