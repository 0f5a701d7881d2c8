package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// selectColumns lists the columns of all tables of a file as table.column, in
// one text. As rows they would take four times as long.
const selectColumns = `SELECT coalesce(group_concat(t.name || '.' || c.name, char(10)), '')
	FROM sqlite_schema AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'`

// checkColumns returns an error unless the file has every column of runner's
// tables. Another program, or a build between two releases, may have written
// the same numbers into the file's header. Without this check, commands would
// fail in the middle of their work.
func (d *File) checkColumns(ctx context.Context) error {
	var all string
	if err := d.conn.GetContext(ctx, &all, selectColumns); err != nil {
		return d.Explain(err)
	}

	missing := schema.Columns()
	for column := range strings.SplitSeq(all, "\n") {
		delete(missing, strings.TrimPrefix(column, d.sql.Prefix))
	}

	if len(missing) > 0 {
		column := slices.Min(slices.Collect(maps.Keys(missing)))
		return notRunner(d.path, fmt.Sprintf(" does not have the tables of schema %d", schema.Version(schema.SQLite)),
			"it has no column "+d.sql.Prefix+column, "nothing was changed")
	}

	return nil
}

// selectObjects lists the tables, indexes, triggers and views of a file,
// without the indexes that SQLite makes for constraints.
const selectObjects = `SELECT type, name, tbl_name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`

// CheckSchema returns an error of kind ErrSchema if somebody has added a
// trigger or an index to one of runner's tables, because each write of a worker
// would run it, or has removed one of runner's own. Other tables, views and
// triggers in the same file are allowed.
func (d *File) CheckSchema(ctx context.Context) error {
	var all []struct {
		Type  string `db:"type"`
		Name  string `db:"name"`
		Table string `db:"tbl_name"`
	}
	if err := d.read.SelectContext(ctx, &all, selectObjects); err != nil {
		return d.Explain(err)
	}

	problem := func(code, what, hint string) error {
		return &jobs.Error{Kind: jobs.ErrSchema, Code: code, Subject: d.path, What: d.path + " " + what, Hint: hint,
			Why: []string{"whoever did that controls what workers run; nothing was changed"}}
	}
	own, missing := map[string]bool{}, map[string]bool{}
	for _, name := range schema.Names() {
		own[strings.ToLower(d.sql.Prefix+name)], missing[d.sql.Prefix+name] = true, true
	}

	for _, o := range all {
		if !own[strings.ToLower(o.Name)] && own[strings.ToLower(o.Table)] {
			return problem(errcode.ForeignObject, fmt.Sprintf("has %s %q on runner's %s", article(o.Type), o.Name, o.Table),
				fmt.Sprintf("DROP %s %q, if you know whose it is", strings.ToUpper(o.Type), o.Name))
		}
		delete(missing, o.Name)
	}

	if len(missing) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(missing)))
		return problem(errcode.NotRunner, "lacks runner's "+name, "another file")
	}

	return nil
}

func article(kind string) string {
	if kind == "index" {
		return "an index"
	}
	return "a " + kind
}

// maxUncleanSize is the greatest size of a file that is checked after a crash:
// the check takes half a second.
const maxUncleanSize = 100 << 20

// Unclean implements engine.Shared.
func (d *File) Unclean() bool {
	size, _ := d.Size()
	return d.logSizeBefore > 0 && size < maxUncleanSize && !d.othersOpen()
}
