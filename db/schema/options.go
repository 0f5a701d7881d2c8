package schema

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The SQL files of the schema contain these placeholders. They stand for SQL about the task options that the column options stores. In
// order, they stand for columns of tasks_view, columns of enqueue, checks of enqueue, and the keys and values of the JSON object that
// enqueue stores. Package taskspec has the list of task options.
const (
	placeOfView    = "/* task options: columns of tasks_view */"
	placeOfColumns = "/* task options: columns of enqueue */"
	placeOfChecks  = "/* task options: checks of enqueue */"
	placeOfObject  = "/* task options: stored object */"
)

// withTaskOptions replaces the placeholders of the task options in a schema. The function write returns the SQL of an option.
func withTaskOptions(schema string, write func(*taskspec.OptionInfo) optionSQL) string {
	var view, columns, checks, object []string
	for i := range taskspec.OptionList() {
		o := &taskspec.OptionList()[i]
		if !o.Stored() {
			continue
		}
		s := write(o)
		view = append(view, s.view+" AS "+o.Key)
		// The view enqueue has no column for these options: the worker looks up the path, and sets the event.
		if o.Key == "path" || o.Key == "event" {
			continue
		}
		columns = append(columns, "NULL"+s.cast+" AS "+o.Key)
		checks = append(checks, s.check)
		object = append(object, "'"+o.Key+"', "+s.value)
	}
	return strings.NewReplacer(placeOfView, strings.Join(view, ",\n  "), placeOfColumns, strings.Join(columns, ", "), placeOfChecks,
		strings.Join(checks, "\n"),
		placeOfObject, strings.Join(object, ", ")).Replace(schema)
}

// optionSQL is the SQL of a task option: its expression in tasks_view, its cast and its check in enqueue, and its value in the JSON object.
type optionSQL struct{ view, cast, check, value string }

// optionRange returns the smallest and the largest value of an option, and its unit.
func optionRange(o *taskspec.OptionInfo) (low, high int64, unit string) {
	switch value := o.Default().(type) {
	case *time.Duration:
		if *value == 0 { // 0 is not allowed, because it would mean the same as NULL
			low = 1
		}
		return low, taskspec.MaxDelay.Milliseconds(), "milliseconds"
	case *int64:
		return o.Min, 1 << 53, "bytes"
	}
	return o.Min, cmp.Or(o.Max, 1<<31-1), "a number"
}

// optionDefault returns the default of an option as an SQL literal, or "" if it has none.
func optionDefault(o *taskspec.OptionInfo) string {
	switch value := o.Default().(type) {
	case *time.Duration:
		if *value != 0 {
			return fmt.Sprint(value.Milliseconds())
		}
	case *int64:
		if o.Zero == "" {
			return fmt.Sprint(*value)
		}
	case *int:
		return fmt.Sprint(*value)
	case *bool:
		return "0"
	case *string:
		if *value != "" {
			return "'" + *value + "'"
		}
	}
	return ""
}

// textsMessage describes valid texts by key.
func textsMessage(o *taskspec.OptionInfo) string {
	message := fmt.Sprintf("a JSON object of texts, at most %d bytes", o.Max)
	if o.MaxKeys > 0 {
		message += fmt.Sprintf(" and %d keys; a key is a letter or digit, then letters, digits and . _ - : /", o.MaxKeys)
	}
	return message
}

// sqliteOption returns the SQL of an option for SQLite.
func sqliteOption(o *taskspec.OptionInfo) optionSQL {
	s := optionSQL{view: "t.options ->> '$." + o.Key + "'", value: "NEW." + o.Key}
	if usual := optionDefault(o); usual != "" {
		s.view = "coalesce(" + s.view + ", " + usual + ")"
	}
	message, wrong := "", ""
	switch o.Default().(type) {
	case *time.Duration, *int64, *int:
		low, high, unit := optionRange(o)
		message = fmt.Sprintf("%s, %d to %d", unit, low, high)
		wrong = fmt.Sprintf("typeof(NEW.%s) <> 'integer' OR NEW.%[1]s NOT BETWEEN %d AND %d", o.Key, low, high)
		if _, ok := o.Default().(*time.Duration); ok {
			s.view = "(" + s.view + ") / 1000.0"
		}
	case *jobs.Codes:
		message = "exit codes, as in 75,100-111"
		wrong = fmt.Sprintf("typeof(NEW.%s) <> 'text' OR NEW.%[1]s = '' OR NEW.%[1]s GLOB '*[^0-9,-]*' OR length(CAST(NEW.%[1]s AS "+
			"BLOB)) > %d OR instr(NEW.%[1]s, char(0))",
			o.Key, taskspec.MaxCodes)
	case *map[string]string:
		s.view, s.value = "t.options -> '$."+o.Key+"'", "json(NEW."+o.Key+")"
		message = textsMessage(o)
		wrong = fmt.Sprintf(`CASE WHEN typeof(NEW.%s) <> 'text' OR NOT json_valid(NEW.%[1]s) OR length(CAST(NEW.%[1]s AS BLOB)) > %d THEN 1
      WHEN json_type(NEW.%[1]s) <> 'object' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.%[1]s) WHERE type <> 'text' OR key = '' OR instr(key, '=')`+
			` OR instr(key || value, char(0))`, o.Key, o.Max)
		if o.MaxKeys > 0 {
			wrong += fmt.Sprintf(` OR key NOT GLOB '[A-Za-z0-9]*' OR key GLOB '*[^A-Za-z0-9._:/-]*' OR length(key) > %d)
        OR (SELECT count(*) FROM json_each(NEW.%s)) > %d END`, taskspec.MaxName, o.Key, o.MaxKeys)
		} else {
			wrong += ") END"
		}
	case *bool:
		s.value = "json(CASE NEW." + o.Key + " WHEN 1 THEN 'true' END)"
		message, wrong = "0 or 1", "NEW."+o.Key+" <> 0 AND NEW."+o.Key+" <> 1"
	default:
		message = fmt.Sprintf("at most %d bytes of text without NUL", taskspec.MaxPath)
		wrong = fmt.Sprintf("typeof(NEW.%s) <> 'text' OR length(CAST(NEW.%[1]s AS BLOB)) > %d OR instr(NEW.%[1]s, char(0))", o.Key,
			taskspec.MaxPath)
		if o.Words != nil {
			message = "one of " + strings.Join(o.Words, ", ")
			wrong = fmt.Sprintf("NOT (NEW.%s = '%s')", o.Key, strings.Join(o.Words, "' OR NEW."+o.Key+" = '"))
		}
	}
	s.check = fmt.Sprintf("    WHEN NEW.%s IS NOT NULL AND (%s) THEN RAISE(ABORT, '%[1]s: %[3]s')", o.Key, wrong, message)
	return s
}

// postgresOption returns the SQL of an option for PostgreSQL.
func postgresOption(o *taskspec.OptionInfo) optionSQL {
	s := optionSQL{view: "t.options ->> '" + o.Key + "'", cast: "::text", value: "NEW." + o.Key}
	message, wrong := "", ""
	switch o.Default().(type) {
	case *time.Duration, *int64, *int:
		low, high, unit := optionRange(o)
		s.view, s.cast = "whole("+s.view+")", "::bigint"
		message = fmt.Sprintf("%s, %d to %d", unit, low, high)
		wrong = fmt.Sprintf("NEW.%s NOT BETWEEN %d AND %d", o.Key, low, high)
	case *jobs.Codes:
		message = "exit codes, as in 75,100-111"
		wrong = fmt.Sprintf(`NEW.%s !~ '^[0-9,-]+$' OR NEW.%[1]s ~ '\n' OR octet_length(NEW.%[1]s) > %d`, o.Key, taskspec.MaxCodes)
	case *map[string]string:
		s.view, s.value = "t.options -> '"+o.Key+"'", "NEW."+o.Key+"::json"
		message = textsMessage(o)
		wrong = fmt.Sprintf(`CASE WHEN NEW.%s IS NULL THEN false
      WHEN octet_length(NEW.%[1]s) > %d OR NEW.%[1]s !~ '^\s*\{' OR NOT is_jsonb(NEW.%[1]s) THEN true
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.%[1]s::json) AS e WHERE json_typeof(e.value) <> 'string' OR e.key = ''`+
			` OR strpos(e.key, '=') > 0`, o.Key, o.Max)
		if o.MaxKeys > 0 {
			wrong += fmt.Sprintf(` OR e.key !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,%d}$' OR e.key ~ '\n')
        OR (SELECT count(*) FROM json_each(NEW.%s::json)) > %d END`, taskspec.MaxName-1, o.Key, o.MaxKeys)
		} else {
			wrong += ") END"
		}
	case *bool:
		s.view, s.cast, s.value = "CASE WHEN "+s.view+" = 'true' THEN 1 ELSE 0 END", "::bigint", "CASE NEW."+o.Key+" WHEN 1 THEN true END"
		message, wrong = "0 or 1", "NEW."+o.Key+" <> 0 AND NEW."+o.Key+" <> 1"
	default:
		message = fmt.Sprintf("at most %d bytes of text without NUL", taskspec.MaxPath)
		wrong = fmt.Sprintf("octet_length(NEW.%s) > %d", o.Key, taskspec.MaxPath)
		if o.Words != nil {
			message = "one of " + strings.Join(o.Words, ", ")
			wrong = fmt.Sprintf("NEW.%s NOT IN ('%s')", o.Key, strings.Join(o.Words, "', '"))
		}
	}
	if usual := optionDefault(o); usual != "" {
		s.view = "coalesce(" + s.view + ", " + usual + ")"
	}
	if _, ok := o.Default().(*time.Duration); ok {
		s.view = "seconds(" + s.view + ")"
	}
	s.check = fmt.Sprintf("    WHEN %s THEN '%s: %s'", wrong, o.Key, message)
	return s
}
