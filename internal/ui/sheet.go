package ui

import "example.com/runner/jobs"

// Choose prints an answer in the form that the user wants: its record with
// --json or --format, text on a terminal, and lines with tabs elsewhere.
func (p *Printer) Choose(record func() Record, lines, text func()) error {
	switch {
	case p.Format != nil:
		return p.Format(record())
	case p.JSON:
		return p.Record(record())
	case p.Stdout.TTY:
		text()
	default:
		lines()
	}
	return nil
}

// Only prints a record with --json, and nothing otherwise.
func (p *Printer) Only(record Record) error {
	nothing := func() {}
	return p.Choose(func() Record { return record }, nothing, nothing)
}

// PrintEnd prints a finished task: its record with --json, or only its result.
func PrintEnd(p *Printer, t jobs.Task, result bool, r Record) error {
	switch {
	case t.State == "": // the task was deleted
		return nil
	case result:
		return WriteJSON(p, Raw(t.Result))
	}
	return p.Only(r)
}

// Answer prints a record, or a text for people. line are the fields of the line
// in a pipe; without them the line has all values of the record.
func (p *Printer) Answer(record Record, text string, line ...any) error {
	if line == nil {
		line = record.Values()
	}
	return p.Choose(func() Record { return record }, func() { p.Fields(line...) }, func() { p.Print(text) })
}

// Sheet prints a list: a record, a line with tabs or a row of a table for each
// element.
type Sheet[T any] struct {
	Record func(T) Record
	Line   func(T) []any    // fields of the line in a pipe
	Cells  func(T) []string // texts of the row of the table
	Table

	list []T // rows of the table: the widths of the columns depend on all of them
}

// Print prints all elements of a list.
func (s Sheet[T]) Print(p *Printer, list []T) error {
	for _, one := range list {
		if err := s.Add(p, one); err != nil {
			return err
		}
	}
	s.End(p)
	return nil
}

// Add prints one element. End prints the table when all have been added.
func (s *Sheet[T]) Add(p *Printer, one T) error {
	return p.Choose(func() Record { return s.Record(one) },
		func() { p.Fields(s.Line(one)...) },
		func() { s.list = append(s.list, one) })
}

// End prints the table.
func (s *Sheet[T]) End(p *Printer) {
	for _, one := range s.list {
		s.Rows = append(s.Rows, s.Cells(one))
	}
	if len(s.Rows) > 0 {
		p.Table(s.Table)
	}
}
