// Package sqltext holds the statements of package db as templates, and renders them for SQLite and PostgreSQL.
//
// A template is SQL with marks in braces. A database renders each statement once, when the statement is first used:
//
//	{tasks}     a table, view or sequence of runner's. Where the names have a prefix, it is rendered with the prefix and an alias,
//	            as in "my_tasks AS tasks", so that columns are written tasks.id everywhere. An alias in the template replaces that one.
//	{json_each} a fragment of the dialect, which the engine's package defines and documents
//	{where}     a part of one statement, which stands in the Parts of the Statement
//	?           the next parameter, which PostgreSQL numbers as $1, $2 and so on
//	?2          the second parameter; a mark may stand for the number
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
	Parts    Parts // templates of the marks that only this statement has
	Reads    bool  // whether it changes nothing
	Once     bool  // whether it is put together for one use, so that nothing keeps it prepared or rendered
}

// Parts has templates by the names of their marks.
type Parts map[string]string

// Query returns a statement that changes nothing.
func Query(template string) *Statement { return &Statement{Template: template, Reads: true} }

// Command returns a statement that may change rows.
func Command(template string) *Statement { return &Statement{Template: template} }

// With returns a statement for one use: s with the given parts.
func (s *Statement) With(parts Parts) *Statement {
	return &Statement{Template: s.Template, Parts: parts, Reads: s.Reads, Once: true}
}

// Series is a template for statements that have a part n times, such as a row of values.
type Series struct {
	Template  string // the mark {parts} stands for the n parts, {after_parts} for the number of the first parameter after them
	Part      string
	Separator string // text between two parts
	Params    int    // number of the parameters of a part; needed for {after_parts}
	Parts     Parts  // templates of more marks
	Reads     bool   // whether the statements change nothing

	statements sync.Map // *Statement by n
}

// Of returns the statement that repeats the part n times. Calls with the same n return the same pointer.
func (s *Series) Of(n int) *Statement {
	if known, ok := s.statements.Load(n); ok {
		return known.(*Statement)
	}
	parts := Parts{"parts": strings.Join(slices.Repeat([]string{s.Part}, n), s.Separator), "after_parts": strconv.Itoa(n*s.Params + 1)}
	maps.Copy(parts, s.Parts)
	known, _ := s.statements.LoadOrStore(n, &Statement{Template: s.Template, Parts: parts, Reads: s.Reads})
	return known.(*Statement)
}

// Dialect is what a database needs to render statements.
type Dialect struct {
	Prefix    string   // before the names of our tables: of a file of another program, or a schema with its dot
	Numbered  bool     // whether parameters are $1, $2 and so on
	Fragments Parts    // templates of the marks that differ between the engines
	rendered  sync.Map // texts by *Statement
}

// Text returns the text of a statement.
func (d *Dialect) Text(s *Statement) string {
	if text, ok := d.rendered.Load(s); ok {
		return text.(string)
	}
	r := renderer{dialect: d, parts: s.Parts}
	r.out.Grow(len(s.Template) + 64)
	r.render(s.Template)
	if !s.Once {
		d.rendered.Store(s, r.out.String())
	}
	return r.out.String()
}

type renderer struct {
	dialect *Dialect
	parts   Parts
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
			if template == "" || template[0] != '{' && (template[0] < '0' || template[0] > '9') {
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
	for _, parts := range []Parts{r.parts, r.dialect.Fragments} {
		if part, ok := parts[name]; ok && !r.script {
			r.render(part)
			return
		}
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
