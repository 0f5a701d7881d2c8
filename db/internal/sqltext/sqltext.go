// Package sqltext holds the statements of package db as templates, and renders
// them for SQLite and PostgreSQL.
//
// A template is SQL with marks and parameters. A mark is a name in braces that
// stands for other text:
//
//	{tasks}     a table, view or sequence of runner's. With a prefix it becomes the name
//	            with an alias, as in my_tasks AS tasks, so that every template can write
//	            tasks.id. An alias in the template replaces this one.
//	{json_each} a fragment of the dialect, which the engine's package defines
//	{where}     a part of one statement, from the field Parts of the Statement
//
// A parameter is a question mark, with or without a number:
//
//	?       the next parameter; for PostgreSQL $1, $2 and so on
//	?2      the second parameter
//	?{last} the parameter whose number is the text of the mark {last}
//
// Text in quotes and comments stays as it is.
//
// A database renders each statement once, when it's first used. Open renders
// none: all statements of package db take 0.5 ms (BenchmarkRender in package
// db), a tenth of one runner enqueue, which uses only a few of them.
package sqltext

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Statement is an SQL statement. A connection keeps its prepared statements by
// the pointer to the Statement.
type Statement struct {
	Template string
	Parts    Parts // for the marks that only this statement uses
	Reads    bool  // it only reads
	Once     bool  // it's for one use, so nobody keeps its prepared or rendered form
	NoAlias  bool  // names of tables get no alias, and Fragments of a Dialect aren't used
}

// Parts holds the template for each mark, by the name of the mark.
type Parts map[string]string

// Query returns a statement that only reads.
func Query(template string) *Statement { return &Statement{Template: template, Reads: true} }

// Command returns a statement that may change rows.
func Command(template string) *Statement { return &Statement{Template: template} }

// Definition returns a statement that creates, drops or locks a table or a
// trigger, in which SQL allows no alias.
func Definition(template string) *Statement { return &Statement{Template: template, NoAlias: true} }

// With returns a statement for one use, with the template of s and other parts.
func (s *Statement) With(parts Parts) *Statement {
	return &Statement{Template: s.Template, Parts: parts, Reads: s.Reads, Once: true, NoAlias: s.NoAlias}
}

// Literal returns a text as a literal of SQL, for where no parameter is
// allowed.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// Series is a template for statements that repeat a part, such as a row of
// values.
type Series struct {
	Template  string // {parts} are the repetitions of Part, and {after_parts} is the number of the next parameter
	Part      string
	Separator string // between two repetitions
	Params    int    // in Part; needed for {after_parts}
	Parts     Parts  // for the other marks in Template
	Reads     bool   // the statements only read

	statements sync.Map // from a number of repetitions to its *Statement
}

// Of returns the statement that repeats the part n times, for each n the same
// pointer.
func (s *Series) Of(n int) *Statement {
	if known, ok := s.statements.Load(n); ok {
		return known.(*Statement)
	}

	parts := Parts{
		"parts":       strings.Join(slices.Repeat([]string{s.Part}, n), s.Separator),
		"after_parts": strconv.Itoa(n*s.Params + 1),
	}
	maps.Copy(parts, s.Parts)
	known, _ := s.statements.LoadOrStore(n, &Statement{Template: s.Template, Parts: parts, Reads: s.Reads})
	return known.(*Statement)
}

// Dialect renders statements for one database.
type Dialect struct {
	Prefix    string // of the names of runner's tables: that of a file, or the schema and a dot on a server
	Numbered  bool   // parameters are $1, $2 and so on
	Fragments Parts  // for the marks whose text differs between the engines

	rendered sync.Map // from a *Statement to its text
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

// renderer renders one template.
type renderer struct {
	dialect *Dialect
	parts   Parts
	out     strings.Builder
	params  int             // numbered so far, if the dialect numbers them
	noAlias bool            // as in Statement
	marks   map[string]bool // names of all marks that were rendered; may be nil
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

// copyUpTo copies text up to and including end, and returns the rest. The
// search begins after the first byte, which may be an opening quote.
func (r *renderer) copyUpTo(text, end string) string {
	n := strings.Index(text[1:], end)
	if n < 0 {
		n = len(text) - 2
	}
	r.out.WriteString(text[:n+2])
	return text[n+2:]
}

// mark renders what a mark stands for: a fragment or the name of a table.
// aliased says that the template itself gives the table an alias.
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

// Marks returns the names that a script has in braces, sorted, each once.
func Marks(script string) []string {
	r := renderer{dialect: &Dialect{}, noAlias: true, marks: map[string]bool{}}
	r.out.Grow(len(script))
	r.render(script)
	return slices.Sorted(maps.Keys(r.marks))
}
