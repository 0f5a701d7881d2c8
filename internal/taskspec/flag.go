package taskspec

import (
	"strings"

	"example.com/runner/jobs"
)

// FlagText returns the text of an error for a person who typed flags: it names
// flags where the error names fields.
func FlagText(err *jobs.FieldError) string {
	field := flagOf(err.Field)
	switch err.Field {
	case "args": // the arguments may be words after --, so --args could mislead
	case "created_by", "name", "target":
		field = strings.ReplaceAll(err.Field, "_", " ")
	default:
		field = "--" + field
	}
	return field + ": " + replaceKeys(err.Msg)
}

// replaceKeys replaces the keys of options with several words by flags. Other
// keys, such as in and label, are words of English too.
func replaceKeys(text string) string {
	for _, o := range Options {
		if key := o.Key; strings.Contains(key, "_") && strings.Contains(text, key) {
			text = strings.ReplaceAll(text, key, "--"+flagOf(key))
		}
	}
	return text
}

// flagOf returns the name of the flag that sets a field.
func flagOf(field string) string {
	for _, o := range Options {
		if o.Key == field && o.Flag != "" {
			return o.Flag
		}
	}
	return strings.ReplaceAll(field, "_", "-")
}
