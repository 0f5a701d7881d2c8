// Package postgres lets package runner work on databases on PostgreSQL servers, version 13 or later:
//
//	r, err := runner.Open(ctx, "postgres://user@host/app", runner.Options{Engine: postgres.Engine()})
//
// The tables are in the schema runner of that database, or in the schema that ?search_path=NAME of the address names. It is a separate
// package, so that programs without a server do not link the PostgreSQL driver.
package postgres

import (
	"example.com/runner/internal/access"
	"example.com/runner/internal/pgdriver"
	"example.com/runner/runner"
)

// Engine returns a value for runner.Options.Engine.
func Engine() runner.Engine { return access.NewEngine(pgdriver.Engine()).(runner.Engine) }
