package main

import (
	"os/exec"
	"slices"
	"testing"
)

// TestTheProgramsDoTheSame runs each program with each library. It leaves out asynq if there is no Redis.
func TestTheProgramsDoTheSame(t *testing.T) {
	names := libraries
	if _, err := exec.LookPath("redis-server"); err != nil {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "asynq" })
	}
	if _, err := compare(t.Context(), sizes{mails: 20, photos: 8, readings: 8, outage: true}, names); err != nil {
		t.Fatal(err)
	}
}
