package ui

import "example.com/runner/jobs"

// Show prints an answer in the form that the user wants: its record with --json
// or --format, a drawing on a terminal, and lines with tabs elsewhere.
func (p *Printer) Show(record func() Record, lines, draw func(*Printer)) error {
	switch {
	case p.Format != nil:
		return p.Format(record())
	case p.JSON:
		return p.Record(record())
	case p.Stdout.TTY:
		draw(p)
	default:
		lines(p)
	}
	return nil
}

// PrintRecord prints a record with --json, and nothing otherwise.
func (p *Printer) PrintRecord(record Record) error {
	nothing := func(*Printer) {}
	return p.Show(func() Record { return record }, nothing, nothing)
}

// PrintEnd prints a finished task: its record with --json, or only its result.
func PrintEnd(p *Printer, t jobs.Task, result bool, r Record) error {
	switch {
	case t.State == "": // the task was deleted
		return nil
	case result:
		return WriteJSON(p, Raw(t.Result))
	}
	return p.PrintRecord(r)
}

// Answer prints a record, or a text for people. line are the fields of the line
// in a pipe; without them the line has all values of the record.
func (p *Printer) Answer(record Record, text string, line ...any) error {
	if line == nil {
		line = record.Values()
	}
	return p.Show(func() Record { return record },
		func(p *Printer) { p.Fields(line...) },
		func(p *Printer) { p.Print(text) })
}

// Sheet prints a list: a record, a line with tabs or a row of a table for each
// element.
type Sheet[T any] struct {
	Row    func(T) Record
	Record func(T) Record // record for other programs; nil if Row has their keys
	Line   []string       // keys and columns of the line in a pipe
	NoCut  bool           // whether the table may be wider than the terminal

	rows []Record // the widths of the columns depend on all of them
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
	record := s.Record
	if record == nil {
		record = s.Row
	}
	return p.Show(func() Record { return record(one) },
		func(p *Printer) { p.Fields(s.Row(one).Values(s.Line...)...) },
		func(*Printer) { s.rows = append(s.rows, s.Row(one)) })
}

// End prints the table.
func (s *Sheet[T]) End(p *Printer) {
	if len(s.rows) > 0 {
		p.Table(s.rows, s.NoCut)
	}
}
