package cli

import (
	"cmp"
	"os/exec"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
)

// name returns the full name of the command, such as "runner schedule add".
func (line *Line) name() string { return strings.Join(append([]string{"runner"}, line.Path...), " ") }

// commandHint returns the command line that the user probably meant. args are
// the words after the unknown command word.
func (line *Line) commandHint(word string, args []string) string {
	if hint := synonym(CommandSynonyms, strings.Join(append(line.Path, word), " "), nil); hint != "" {
		return hint
	}

	names := commandNamesOf(line.commands)
	if near := cmp.Or(humanize.Nearest(word, names), onlyBeginning(word, names)); near != "" {
		return line.name() + " " + near
	}
	if _, err := exec.LookPath(word); err == nil && line.Path == nil && len(args) > 0 {
		return "runner enqueue -- " + word + " " + args[0]
	}
	return line.name() + " --help"
}

// onlyBeginning returns the only one of the names that begins with word, or an
// empty string.
func onlyBeginning(word string, names []string) string {
	found := ""
	for _, name := range names {
		if strings.HasPrefix(name, word) && len(strings.Trim(word, "-")) > 1 {
			if found != "" {
				return ""
			}
			found = name
		}
	}

	return found
}

// synonym returns the hint for a name of another tool, or an empty string. If
// fits isn't nil, it chooses among the hints.
func synonym(list []Synonym, name string, fits func(hint string) bool) string {
	for _, s := range list {
		if slices.Contains(strings.Split(s.Names, ", "), name) && (fits == nil || fits(s.Hint)) {
			return s.Hint
		}
	}
	return ""
}

func commandNamesOf(list []*Command) (names []string) {
	for _, c := range list {
		if !c.Hidden {
			names = append(append(names, c.Name), c.Aliases...)
		}
	}
	return names
}

// unknownOption returns the error for an option that the command does not have.
func (line *Line) unknownOption(name string) *ui.Error {
	f := ui.Usage("unknown option %s of %s", name, line.name())
	if line.Command == nil {
		f = ui.Usage("unknown option %s before the command", name)
	}
	return f.Hint("%s", line.optionHint(name))
}

// optionHint returns what the user probably meant with an unknown option:
// another option or a command line.
func (line *Line) optionHint(name string) string {
	if line.option("-"+name) != nil { // the user typed a long name after a single dash: -queue
		return "-" + name
	}
	if hint := line.optionSynonym(name); hint != "" {
		return hint
	}
	if state := strings.TrimLeft(name, "-"); line.option("--state") != nil {
		if _, err := search.ParseStates(state); err == nil {
			return "-s " + state
		}
	}

	var names []string
	for _, o := range line.options {
		names = append(names, "--"+o.name)
	}

	return cmp.Or(humanize.Nearest(name, names), onlyBeginning(name, names), line.name()+" --help")
}

// optionSynonym returns the hint for an option of another tool, or an empty
// string.
func (line *Line) optionSynonym(name string) string {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	if letter := strings.TrimRight(name, "0123456789"); len(letter) == 1 && line.option("-"+letter) == nil { // -j4
		name = letter
	}
	return synonym(OptionSynonyms, name, func(hint string) bool {
		first, _, _ := strings.Cut(hint, " ")
		return line.option(first) != nil || strings.HasPrefix(hint, line.name()+" ")
	})
}
