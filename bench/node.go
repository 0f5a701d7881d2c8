package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

// plainjob runs one measurement with plainjob/bench.mjs. That script itself
// checks that each job ran once.
func plainjob(what string, n int, more ...string) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		args := append([]string{"bench.mjs", what, e.path("plainjob.db"), strconv.Itoa(e.size(n))}, more...)
		cmd := exec.CommandContext(ctx, "node", args...)
		cmd.Dir = "plainjob"
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, complaint.Bytes())
		}

		var answer struct{ Value float64 }
		return answer.Value, json.Unmarshal(out, &answer)
	}
}

func havePlainjob() bool {
	found, _ := filepath.Glob("plainjob/node_modules/better-sqlite3/build/Release/*.node")
	return len(found) > 0
}
