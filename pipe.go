package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"example.com/runner/internal/term"
)

// pair is a key of a record and its value as pipes have it: null is empty, a text is itself, anything else is JSON.
type pair struct{ key, value string }

// pairs takes a record of --json apart, in its order.
func pairs(record any) ([]pair, error) {
	var line bytes.Buffer
	if err := term.WriteJSON(&line, record); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(&line)
	if _, err := decoder.Token(); err != nil { // the brace
		return nil, err
	}
	var list []pair
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
		list = append(list, pair{fmt.Sprint(key), text})
	}
	return list, nil
}

// lines writes the values of each record of a list.
func lines[T any](p *term.Printer, word string, list []T) error {
	for _, record := range list {
		if err := writeValues(p, word, record); err != nil {
			return err
		}
	}
	return nil
}

// writeValues writes a word and the values of a record as a line for other programs.
func writeValues(p *term.Printer, word string, record any) error {
	list, err := pairs(record)
	if err != nil {
		return err
	}
	line := []string{word}
	for _, pair := range list {
		line = append(line, pair.value)
	}
	p.Fields(line...)
	return nil
}
