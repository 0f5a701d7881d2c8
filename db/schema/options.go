package schema

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/taskspec"
)

// The column "options" of a task stores its task options as JSON. Package taskspec has the list of all task options. Some SQL of the schema
// depends on this list. The SQL files have the following marks in its place:
//
//	{option_values}  columns of the view tasks_view
//	{option_columns} columns of the view enqueue
//	{option_checks}  checks of values that somebody inserts into the view enqueue
//	{option_object}  keys and values of the JSON object that an INSERT into the view enqueue stores

// withTaskOptions replaces the marks {option_values}, {option_columns}, {option_checks} and {option_object} in the text of a schema.
func withTaskOptions(schema string, dialect *optionDialect) string {
	var values, columns, checks, object []string
	for i := range taskspec.OptionList() {
		o := &taskspec.OptionList()[i]
		if !o.Stored() {
			continue
		}
		parts := dialect.parts(o)
		values = append(values, parts.Fill("{view} AS {key}"))
		// The view "enqueue" has no column for these two options, because only runner itself sets them.
		if o.Key == "path" || o.Key == "event" {
			continue
		}
		columns = append(columns, parts.Fill("NULL{cast} AS {key}"))
		checks = append(checks, parts.Fill(dialect.check))
		object = append(object, parts.Fill("{name}, {value}"))
	}
	return sqltext.Parts{"option_values": strings.Join(values, ",\n  "), "option_columns": strings.Join(columns, ", "),
		"option_checks": strings.Join(checks, "\n"), "option_object": strings.Join(object, ", ")}.Fill(schema)
}

// optionKind is a kind of options that have the same SQL.
type optionKind int

const (
	durationKind optionKind = iota
	numberKind              // a number, or a number of bytes
	codesKind               // exit codes
	textsKind               // map from keys to texts
	keyedKind               // map from keys to texts, with limits for the form and the number of keys
	flagKind
	textKind
	wordKind // one of several words
)

func kindOf(o *taskspec.OptionInfo) optionKind {
	switch o.Default().(type) {
	case *taskspec.Duration:
		return durationKind
	case *taskspec.Size, *taskspec.Number:
		return numberKind
	case *taskspec.Texts:
		if o.MaxKeys > 0 {
			return keyedKind
		}
		return textsKind
	case *taskspec.Flag:
		return flagKind
	}
	switch {
	case o.Words != nil:
		return wordKind
	case o.Value == "CODES":
		return codesKind
	}
	return textKind
}

// optionDialect holds, for one dialect, the templates of the SQL about task options.
type optionDialect struct {
	path    string                   // text before the key in {path}: SQLite needs a JSON path such as $.key, PostgreSQL only the key
	check   string                   // template for the check of one option in the view "enqueue"
	between string                   // SQL text that separates two values in the list of the values that an option allows
	kinds   map[optionKind]optionSQL // templates for each kind of options
}

// optionSQL holds SQL templates for a kind of options. optionDialect.parts defines the marks in these templates.
type optionSQL struct {
	stored  string // expression for the stored value of task t; it is NULL if the task does not have the option
	view    string // expression for the value in tasks_view; an empty template means {usual}
	cast    string // cast of the option's column in the view "enqueue", such as ::bigint
	value   string // expression for the value to store in the JSON object; an empty template means NEW.{key}
	invalid string // condition that is true for an invalid value
}

// parts returns the texts that replace the marks in the templates of an option. {usual} is the stored value, or the default if the task
// does not have the option. {name} is the key as an SQL literal.
func (d *optionDialect) parts(o *taskspec.OptionInfo) sqltext.Parts {
	kind := kindOf(o)
	s := d.kinds[kind]
	low, high, message := optionRange(o, kind)
	words := make([]string, len(o.Words))
	for i, word := range o.Words {
		words[i] = sqltext.Literal(word)
	}
	parts := sqltext.Parts{"key": o.Key, "name": sqltext.Literal(o.Key), "path": sqltext.Literal(d.path + o.Key),
		"low": strconv.FormatInt(low, 10), "high": strconv.FormatInt(high, 10), "max_name": strconv.Itoa(taskspec.MaxName),
		"max_keys": strconv.Itoa(o.MaxKeys), "key_pattern": keyPattern, "words": strings.Join(words, d.between),
		"message": sqltext.Literal(o.Key + ": " + message), "stored": s.stored, "usual": "{stored}", "view": cmp.Or(s.view, "{usual}"),
		"cast": s.cast, "value": cmp.Or(s.value, "NEW.{key}"), "invalid": s.invalid}
	if usual := optionDefault(o); usual != "" {
		parts["usual"] = "coalesce({stored}, " + usual + ")"
	}
	return parts
}

// optionRange returns the smallest and the greatest number that is valid for an option, and a description of valid values. For a text the
// number is its length in bytes.
func optionRange(o *taskspec.OptionInfo, kind optionKind) (low, high int64, message string) {
	low, high = o.Min, cmp.Or(o.Max, 1<<31-1)
	unit := "a number"
	switch value := o.Default().(type) {
	case *taskspec.Duration:
		if *value == 0 { // 0 is not allowed, because it would mean the same as NULL
			low = 1
		}
		high, unit = taskspec.MaxDelay.Milliseconds(), "milliseconds"
	case *taskspec.Size:
		high, unit = 1<<53, "bytes"
	}
	switch kind {
	case codesKind:
		return 0, taskspec.MaxCodes, "exit codes, as in 75,100-111"
	case textsKind:
		return 0, high, fmt.Sprintf("a JSON object of texts, at most %d bytes", high)
	case keyedKind:
		return 0, high, fmt.Sprintf("a JSON object of texts, at most %d bytes and %d keys; "+
			"a key is a letter or digit, then letters, digits and . _ - : /", high, o.MaxKeys)
	case flagKind:
		return 0, 1, "0 or 1"
	case textKind:
		return 0, taskspec.MaxPath, fmt.Sprintf("at most %d bytes of text without NUL", taskspec.MaxPath)
	case wordKind:
		return 0, 0, "one of " + strings.Join(o.Words, ", ")
	}
	return low, high, fmt.Sprintf("%s, %d to %d", unit, low, high)
}

// optionDefault returns the default of an option as an SQL literal, or "" if it has none.
func optionDefault(o *taskspec.OptionInfo) string {
	switch text := o.StoredDefault(); {
	case text == "false":
		return "0"
	case strings.HasPrefix(text, `"`):
		return sqltext.Literal(strings.Trim(text, `"`))
	default:
		return text
	}
}

const (
	sqliteStored = "t.options ->> {path}"
	sqliteNumber = "typeof(NEW.{key}) <> 'integer' OR NEW.{key} NOT BETWEEN {low} AND {high}"
	sqliteText   = "typeof(NEW.{key}) <> 'text'"
	sqliteLength = "length(CAST(NEW.{key} AS BLOB)) > {high}"
	notFlag      = "NEW.{key} <> 0 AND NEW.{key} <> 1"
)

// sqliteTexts is the beginning of an SQLite condition that is true for an invalid map from keys to texts. The templates that use it append
// further conditions on a key, and the end of the CASE.
const sqliteTexts = `CASE WHEN ` + sqliteText + ` OR NOT json_valid(NEW.{key}) OR ` + sqliteLength + ` THEN 1
      WHEN json_type(NEW.{key}) <> 'object' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.{key}) WHERE type <> 'text' OR key = '' OR instr(key, '=') OR instr(key || value, char(0))`

// sqliteOptions is the SQL about task options for SQLite.
var sqliteOptions = &optionDialect{
	path:    "$.",
	check:   "    WHEN NEW.{key} IS NOT NULL AND ({invalid}) THEN RAISE(ABORT, {message})",
	between: " OR NEW.{key} = ",
	kinds: map[optionKind]optionSQL{
		durationKind: {stored: sqliteStored, view: "({usual}) / 1000.0", invalid: sqliteNumber},
		numberKind:   {stored: sqliteStored, invalid: sqliteNumber},
		codesKind: {stored: sqliteStored, invalid: sqliteText + " OR NEW.{key} = '' OR NEW.{key} GLOB '*[^0-9,-]*' OR " + sqliteLength +
			" OR instr(NEW.{key}, char(0))"},
		textsKind: {stored: "t.options -> {path}", value: "json(NEW.{key})", invalid: sqliteTexts + ") END"},
		keyedKind: {stored: "t.options -> {path}", value: "json(NEW.{key})", invalid: sqliteTexts +
			` OR key NOT GLOB '[A-Za-z0-9]*' OR key GLOB '*[^A-Za-z0-9._:/-]*' OR length(key) > {max_name})
        OR (SELECT count(*) FROM json_each(NEW.{key})) > {max_keys} END`},
		flagKind: {stored: sqliteStored, value: "json(CASE NEW.{key} WHEN 1 THEN 'true' END)", invalid: notFlag},
		textKind: {stored: sqliteStored, invalid: sqliteText + " OR " + sqliteLength + " OR instr(NEW.{key}, char(0))"},
		wordKind: {stored: sqliteStored, invalid: "NOT (NEW.{key} = {words})"},
	},
}

const (
	postgresStored = "t.options ->> {path}"
	postgresNumber = "whole(" + postgresStored + ")"
	postgresRange  = "NEW.{key} NOT BETWEEN {low} AND {high}"
	postgresLength = "octet_length(NEW.{key}) > {high}"
)

// postgresTexts is the beginning of a PostgreSQL condition that is true for an invalid map from keys to texts. The templates that use it
// append further conditions on a key, and the end of the CASE.
const postgresTexts = `CASE WHEN NEW.{key} IS NULL THEN false
      WHEN ` + postgresLength + ` OR NEW.{key} !~ '^\s*\{' OR NOT is_jsonb(NEW.{key}) THEN true
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.{key}::json) AS e WHERE json_typeof(e.value) <> 'string' OR e.key = ''` +
	` OR strpos(e.key, '=') > 0`

// keyPattern is a literal with the regular expression of a valid key.
var keyPattern = sqltext.Literal(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,%d}$`, taskspec.MaxName-1))

// postgresOptions is the SQL about task options for PostgreSQL.
var postgresOptions = &optionDialect{
	check:   "    WHEN {invalid} THEN {message}",
	between: ", ",
	kinds: map[optionKind]optionSQL{
		durationKind: {stored: postgresNumber, view: "seconds({usual})", cast: "::bigint", invalid: postgresRange},
		numberKind:   {stored: postgresNumber, cast: "::bigint", invalid: postgresRange},
		codesKind: {stored: postgresStored, cast: "::text", invalid: `NEW.{key} !~ '^[0-9,-]+$' OR NEW.{key} ~ '\n' OR ` +
			postgresLength},
		textsKind: {stored: "t.options -> {path}", cast: "::text", value: "NEW.{key}::json", invalid: postgresTexts + ") END"},
		keyedKind: {stored: "t.options -> {path}", cast: "::text", value: "NEW.{key}::json", invalid: postgresTexts +
			` OR e.key !~ {key_pattern} OR e.key ~ '\n')
        OR (SELECT count(*) FROM json_each(NEW.{key}::json)) > {max_keys} END`},
		flagKind: {stored: "CASE WHEN " + postgresStored + " = 'true' THEN 1 ELSE 0 END", cast: "::bigint",
			value: "CASE NEW.{key} WHEN 1 THEN true END", invalid: notFlag},
		textKind: {stored: postgresStored, cast: "::text", invalid: postgresLength},
		wordKind: {stored: postgresStored, cast: "::text", invalid: "NEW.{key} NOT IN ({words})"},
	},
}
