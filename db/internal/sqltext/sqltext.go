// Package sqltext holds the statements of package db as templates, and renders them for SQLite and PostgreSQL.
//
// A template is SQL with marks and parameters. A mark is a name in braces that stands for other text:
//
//	{tasks}     a table, view or sequence of runner's. If its name has a prefix, the mark becomes the name with an alias, such as
//	            "my_tasks AS tasks", so that every template can write tasks.id. An alias in the template replaces this alias.
//	{json_each} a fragment of the dialect, which the engine's package defines and documents
//	{where}     a part of one statement, defined in the field Parts of the Statement
//
// A parameter is a question mark, with or without a number:
//
//	?       the next parameter; for PostgreSQL the renderer writes $1, $2 and so on
//	?2      the second parameter
//	?{last} the parameter whose number is the text of the mark {last}
//
// The renderer does not change text in quotes and comments.
//
// A database renders each statement once, when the statement is first used. Open renders nothing: all statements of package db take 0.5 ms
// (BenchmarkRender in package db), a tenth of the time of one "runner enqueue", which uses only a few of them.
package sqltext

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Statement is an SQL statement. A connection stores its prepared statements by the pointer to the Statement.
type Statement struct {
	Template string
	Parts    Parts // templates for the marks that only this statement uses
	Reads    bool  // whether the statement only reads
	Once     bool  // whether the statement was built for one use, so that no code stores its prepared or rendered form
	NoAlias  bool  // whether names of tables are rendered without an alias; such a statement uses no Fragments of a Dialect
}

// Parts holds the template for each mark, by the name of the mark.
type Parts map[string]string

// Query returns a statement that only reads.
func Query(template string) *Statement { return &Statement{Template: template, Reads: true} }

// Command returns a statement that may change rows.
func Command(template string) *Statement { return &Statement{Template: template} }

// Definition returns a statement that creates, drops or locks a table or a trigger. SQL allows no alias in such a statement.
func Definition(template string) *Statement { return &Statement{Template: template, NoAlias: true} }

// With returns a statement for one use, which has the template of s and the given parts.
func (s *Statement) With(parts Parts) *Statement {
	return &Statement{Template: s.Template, Parts: parts, Reads: s.Reads, Once: true, NoAlias: s.NoAlias}
}

// Literal returns a text as a literal of SQL, for a part of a statement that accepts no parameter.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Series is a template for statements that repeat a part n times, such as a row of values.
type Series struct {
	Template  string // {parts} stands for n repetitions of Part, and {after_parts} for the number of the next parameter
	Part      string
	Separator string // text between two repetitions of Part
	Params    int    // number of parameters in Part; needed for {after_parts}
	Parts     Parts  // templates for all marks in Template except {parts} and {after_parts}
	Reads     bool   // whether the statements only read

	statements sync.Map // maps n, the number of parts, to the *Statement that repeats the part n times
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

// Dialect holds the properties of a database that are needed to render statements.
type Dialect struct {
	Prefix    string   // text before the names of runner's tables: the prefix in a file, or the schema and a dot on a server
	Numbered  bool     // whether parameters are $1, $2 and so on
	Fragments Parts    // templates for the marks that stand for different text on each engine
	rendered  sync.Map // maps a *Statement to its text
}

// Text returns the text of a statement.
func (d *Dialect) Text(s *Statement) string {
	if text, ok := d.rendered.Load(s); ok {
		return text.(string)
	}
	r := renderer{dialect: d, parts: s.Parts, noAlias: s.NoAlias}
	r.out.Grow(len(s.Template) + 64)
	r.render(s.Template)
	if !s.Once {
		d.rendered.Store(s, r.out.String())
	}
	return r.out.String()
}

// renderer renders one template. A mark is a name in braces. It stands for another template or for the name of a table.
type renderer struct {
	dialect *Dialect
	parts   Parts
	out     strings.Builder
	params  int             // how many parameters the renderer has numbered; used only if dialect.Numbered is set
	noAlias bool            // if true, the renderer adds no alias to a name, and does not use the fragments of the dialect
	marks   map[string]bool // set of the names of all marks that were rendered; may be nil
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

// copyUpTo copies the beginning of the parameter "text", up to and including the string "end", and returns the rest. Its search for this
// string begins after the first byte, because the first byte may be an opening quote.
func (r *renderer) copyUpTo(text, end string) string {
	n := strings.Index(text[1:], end)
	if n < 0 {
		n = len(text) - 2
	}
	r.out.WriteString(text[:n+2])
	return text[n+2:]
}

// mark renders the text for which a mark stands: a fragment or the name of a table. The parameter "aliased" reports whether the template
// itself gives the table an alias.
func (r *renderer) mark(name string, aliased bool) {
	if r.marks != nil {
		r.marks[name] = true
	}
	part, ok := r.parts[name]
	if !ok && !r.noAlias {
		part, ok = r.dialect.Fragments[name]
	}
	if ok {
		r.render(part)
		return
	}
	r.out.WriteString(r.dialect.Prefix)
	r.out.WriteString(name)
	if r.dialect.Prefix != "" && !aliased && !r.noAlias {
		r.out.WriteString(" AS ")
		r.out.WriteString(name)
	}
}

// Marks returns the names that a script has in braces. It sorts the names and returns each name once.
func Marks(script string) []string {
	r := renderer{dialect: &Dialect{}, noAlias: true, marks: map[string]bool{}}
	r.render(script)
	return slices.Sorted(maps.Keys(r.marks))
}
