// Package sqltext holds the statements of package db as templates, and renders them for SQLite and PostgreSQL.
//
// A template is SQL with marks in braces. A database renders each statement once, when the statement is first used:
//
//	{tasks}     a table, view or sequence of runner's. Where the names have a prefix, it is rendered with the prefix and an alias,
//	            as in "my_tasks AS tasks", so that columns are written tasks.id everywhere. An alias in the template replaces that one.
//	{json_each} a fragment of the dialect, which the engine's package defines and documents
//	?           the next parameter, which PostgreSQL numbers as $1, $2 and so on
//	?2          the second parameter
//
// The renderer copies text in quotes and comments as it is.
package sqltext

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Statement is one statement. Its address identifies it: a connection keeps prepared statements by it.
type Statement struct {
	Template string
	Reads    bool // whether it changes nothing
	Once     bool // whether it is put together for one use, so that nothing keeps it prepared or rendered
}

// Query returns a statement that changes nothing.
func Query(template string) *Statement { return &Statement{Template: template, Reads: true} }

// Command returns a statement that may change rows.
func Command(template string) *Statement { return &Statement{Template: template} }

// Dialect is what a database needs to render statements.
type Dialect struct {
	Prefix    string            // before the names of our tables: of a file of another program, or a schema with its dot
	Numbered  bool              // whether parameters are $1, $2 and so on
	Fragments map[string]string // templates by the names of their marks
	rendered  sync.Map          // texts by *Statement
}

// Text returns the text of a statement.
func (d *Dialect) Text(s *Statement) string {
	if s.Once {
		return d.Render(s.Template)
	}
	if text, ok := d.rendered.Load(s); ok {
		return text.(string)
	}
	text := d.Render(s.Template)
	d.rendered.Store(s, text)
	return text
}

// Render returns the text of a template.
func (d *Dialect) Render(template string) string {
	r := renderer{dialect: d}
	r.out.Grow(len(template) + 64)
	r.render(template)
	return r.out.String()
}

type renderer struct {
	dialect *Dialect
	out     strings.Builder
	params  int             // that had no number so far
	script  bool            // whether marks are names only
	marks   map[string]bool // collects the names of marks, unless it is nil
}

func (r *renderer) render(template string) {
	for template != "" {
		at := strings.IndexAny(template, "'\"-?{")
		if at < 0 {
			break
		}
		r.out.WriteString(template[:at])
		template = template[at:]
		switch {
		case template[0] == '\'' || template[0] == '"':
			template = r.copyUpTo(template, template[:1])
		case strings.HasPrefix(template, "--"):
			template = r.copyUpTo(template, "\n")
		case template[0] == '{':
			name, rest, _ := strings.Cut(template[1:], "}")
			r.mark(name, strings.HasPrefix(rest, " AS "))
			template = rest
		case template[0] == '?' && r.dialect.Numbered:
			template = template[1:]
			r.out.WriteByte('$')
			if template == "" || template[0] < '0' || template[0] > '9' {
				r.params++
				r.out.WriteString(strconv.Itoa(r.params))
			}
		default:
			r.out.WriteByte(template[0])
			template = template[1:]
		}
	}
	r.out.WriteString(template)
}

// copyUpTo copies text up to and including the next end, which is not its first byte, and returns the rest.
func (r *renderer) copyUpTo(text, end string) string {
	n := strings.Index(text[1:], end)
	if n < 0 {
		n = len(text) - 2
	}
	r.out.WriteString(text[:n+2])
	return text[n+2:]
}

// mark renders a fragment or the name of a table. aliased reports whether the template gives the table a name of its own.
func (r *renderer) mark(name string, aliased bool) {
	if r.marks != nil {
		r.marks[name] = true
	}
	if fragment, ok := r.dialect.Fragments[name]; ok && !r.script {
		r.render(fragment)
		return
	}
	r.out.WriteString(r.dialect.Prefix)
	r.out.WriteString(name)
	if r.dialect.Prefix != "" && !aliased && !r.script {
		r.out.WriteString(" AS ")
		r.out.WriteString(name)
	}
}

// Names renders a script that creates tables: a mark is the name of a table, an index, a view or a trigger with the prefix, without
// an alias.
func (d *Dialect) Names(script string) string {
	r := renderer{dialect: d, script: true}
	r.render(script)
	return r.out.String()
}

// Marks returns the names of the marks of a script, each once, sorted.
func Marks(script string) []string {
	r := renderer{dialect: &Dialect{}, script: true, marks: map[string]bool{}}
	r.render(script)
	return slices.Sorted(maps.Keys(r.marks))
}
