package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/runner/runner"
)

// The measurements in this file show the cost of each part of the schema of
// tasks. They insert, claim and finish tasks in the bare loop of bare.go, once
// with runner's schema and once with the same schema without that part. A
// transaction inserts a thousand tasks, or claims and finishes a hundred. The
// figure is processor time, because other work on the machine changes it less
// than the elapsed time.

// part is a part of the schema that a measurement can leave out.
type part struct {
	name string
	drop func(schema []string) []string
}

// schemaOf returns the SQL statements that create the tables, indexes and
// triggers of a new database, tables first.
func schemaOf(ctx context.Context, e *env) ([]string, error) {
	r, err := runner.Open(ctx, e.path("schema.db"), runner.Options{Sync: runner.SyncNormal})
	if err != nil {
		return nil, err
	}
	defer r.Close()

	pool, err := sql.Open("sqlite", dsn(e.path("schema.db"), "NORMAL"))
	if err != nil {
		return nil, err
	}
	defer pool.Close()

	rows, err := pool.QueryContext(ctx,
		`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type <> 'table', rowid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	var schema []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		schema = append(schema, text)
	}

	return schema, rows.Err()
}

var (
	indexName   = regexp.MustCompile(`(?i)^CREATE (?:UNIQUE )?INDEX (\w+) ON tasks\b`)
	triggerName = regexp.MustCompile(`(?i)^CREATE TRIGGER (\w+)[^\n]* ON tasks\b`)
	tasksTable  = regexp.MustCompile(`(?i)^CREATE TABLE "?tasks"?\s*\(`)
)

// parts returns the parts of the schema of tasks: each index, each trigger,
// each CHECK, and some groups of them.
func parts(schema []string) []part {
	list := []part{{whole, func(s []string) []string { return s }}}
	without := func(text string) func([]string) []string {
		return func(s []string) []string {
			var rest []string
			for _, t := range s {
				if t != text {
					rest = append(rest, t)
				}
			}
			return rest
		}
	}
	for _, text := range schema {
		if m := indexName.FindStringSubmatch(text); m != nil && m[1] != "tasks_pending" { // keep tasks_pending: a claim needs it
			list = append(list, part{"index " + m[1], without(text)})
		}
		if m := triggerName.FindStringSubmatch(text); m != nil {
			list = append(list, part{"trigger " + m[1], without(text)})
		}
	}

	checks := func(name string, cut func(string) string) {
		list = append(list, part{name, func(s []string) []string {
			rest := make([]string, len(s))
			for i, t := range s {
				if rest[i] = t; tasksTable.MatchString(t) {
					rest[i] = cut(t)
				}
			}
			return rest
		}})
	}
	n := 0
	for _, text := range schema {
		if tasksTable.MatchString(text) {
			n = strings.Count(comment.ReplaceAllString(text, ""), "CHECK (")
		}
	}

	for i := range n {
		first := ""
		for _, text := range schema {
			if tasksTable.MatchString(text) {
				first = checkName(text, i)
			}
		}
		checks("CHECK of "+first, func(t string) string { return withoutChecks(t, i, 1) })
	}

	checks("all CHECKs", func(t string) string { return withoutChecks(t, 0, n) })
	index := func(t string) bool {
		m := indexName.FindStringSubmatch(t)
		return m != nil && !slices.Contains(plainIndexes, m[1])
	}
	for _, p := range []struct {
		name string
		cut  func(text string) bool
	}{
		{"all triggers", triggerName.MatchString},
		{"all indexes that a plain task does not need", index},
		{unused, func(t string) bool { return index(t) || triggerName.MatchString(t) }},
	} {
		list = append(list, part{p.name, func(s []string) []string { return slices.DeleteFunc(slices.Clone(s), p.cut) }})
	}

	return list
}

const (
	whole  = "the whole schema"
	unused = "all indexes and triggers that a plain task does not need"
)

// plainIndexes are the indexes in which each task has an entry at some time of
// its life.
var plainIndexes = []string{"tasks_pending", "tasks_running", "tasks_finished"}

var comment = regexp.MustCompile(`--[^\n]*`)

// checkName returns the name of the column to which a CHECK of a CREATE TABLE
// belongs, or "the whole row". The parameter i is the number of the CHECK in
// the statement, from 0.
func checkName(text string, i int) string {
	text = comment.ReplaceAllString(text, "")
	for range i {
		at := strings.Index(text, "CHECK (")
		text = text[at+len("CHECK ("):]
	}

	line := text[:strings.Index(text, "CHECK (")]
	line = line[max(strings.LastIndexAny(line, "\n,"), 0):]
	name, _, _ := strings.Cut(strings.TrimLeft(line, "\n, "), " ")
	if name == "" {
		return "the whole row"
	}

	return name
}

// withoutChecks removes n CHECKs from a CREATE TABLE, and keeps the CHECKs
// before them. kept is their number. withoutChecks also removes all comments,
// because a comment may contain parentheses.
func withoutChecks(text string, kept, n int) string {
	text = comment.ReplaceAllString(text, "")
	for range n {
		at := 0
		for range kept {
			at += strings.Index(text[at:], "CHECK (") + len("CHECK (")
		}

		at += strings.Index(text[at:], "CHECK (")
		end, depth := at+len("CHECK "), 0
		for ; ; end++ {
			if text[end] == '(' {
				depth++
			} else if text[end] == ')' {
				if depth--; depth == 0 {
					break
				}
			}
		}

		text = text[:at] + text[end+1:]
	}

	return regexp.MustCompile(`,\s*(,|\))`).ReplaceAllString(text, "\n$1")
}

// life measures how much processor time a task needs from its insertion to its
// end, in microseconds, if the schema lacks one part.
func life(name string, n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		schema, err := schemaOf(ctx, e)
		if err != nil {
			return 0, err
		}

		for _, p := range parts(schema) {
			if p.name == name {
				schema = p.drop(schema)
			}
		}

		b, done, err := openBare(ctx, e.path("life.db"), "NORMAL")
		if err != nil {
			return 0, err
		}
		defer done()

		for _, text := range schema {
			if _, err := b.conn.ExecContext(ctx, text); err != nil {
				return 0, fmt.Errorf("%w: %s", err, text)
			}
		}

		before := processorTime()
		if err := b.insert(ctx, n, 1000); err != nil {
			return 0, err
		}
		if err := b.drain(ctx, 100); err != nil {
			return 0, err
		}

		used := processorTime() - before
		var completed int
		if err := b.conn.QueryRowContext(ctx, `SELECT count(*) FROM tasks WHERE state = 'completed'`).Scan(&completed); err != nil {
			return 0, err
		}
		if completed != n {
			return 0, fmt.Errorf("%d of %d rows completed", completed, n)
		}

		return float64(used.Nanoseconds()) / 1000 / float64(n), nil
	}
}

// processorTime returns the processor time that this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// costNames returns the names of the parts of the schema that are measured.
func costNames() ([]string, error) {
	dir, err := os.MkdirTemp("", "bench-schema-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	schema, err := schemaOf(context.Background(), &env{dir: dir})
	if err != nil {
		return nil, err
	}

	var names []string
	for _, p := range parts(schema) {
		names = append(names, p.name)
	}

	return names, nil
}
