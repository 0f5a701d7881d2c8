package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"example.com/runner/internal/term"
)

// Pair is a key of a record, and its value as text. For null the text is empty. A string is without quotes. Other values are JSON.
type Pair struct{ Key, Value string }

// Pairs returns the keys and values of a JSON record, in the order of the record.
func Pairs(record any) ([]Pair, error) {
	var line bytes.Buffer
	if err := term.WriteJSON(&line, record); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(&line)
	if _, err := decoder.Token(); err != nil { // read the opening brace
		return nil, err
	}
	var list []Pair
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		text := string(raw)
		switch {
		case text == "null":
			text = ""
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		list = append(list, Pair{fmt.Sprint(key), text})
	}
	return list, nil
}

// Lines prints each record of a list as a line, with a tab between the values. Other programs read such lines.
func Lines[T any](p *term.Printer, word string, list []T) error {
	for _, record := range list {
		if err := writeValues(p, word, record); err != nil {
			return err
		}
	}
	return nil
}

// writeValues prints a word and the values of a record as one line, with tabs between them.
func writeValues(p *term.Printer, word string, record any) error {
	list, err := Pairs(record)
	if err != nil {
		return err
	}
	line := []string{word}
	for _, pair := range list {
		line = append(line, pair.Value)
	}
	p.Fields(line...)
	return nil
}
