package cli

import (
	"cmp"
	"os/exec"
	"slices"
	"strings"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
)

// name returns the full name of the command, such as "runner schedule add".
func (line *Line) name() string { return strings.Join(append([]string{"runner"}, line.Path...), " ") }

// commandHint returns the command line that the user probably meant. The parameter "word" is an unknown command, and "args" contains the
// words after it.
func (line *Line) commandHint(word string, args []string) string {
	path, next := strings.Join(append(line.Path, word), " "), ""
	if len(args) > 0 {
		next = args[0]
	}
	if hint := cmp.Or(commandSynonym(path+" "+next), line.verbHint(path, next), commandSynonym(path)); hint != "" {
		return hint
	}
	names := commandNamesOf(line.commands)
	if near := cmp.Or(humanize.Nearest(word, names), beginning(word, names)); near != "" {
		return line.name() + " " + near
	}
	if _, err := exec.LookPath(word); err == nil && line.Path == nil && next != "" {
		return "runner enqueue -- " + word + " " + next
	}
	return line.name() + " --help"
}

// beginning returns the only one of the names that begins with word, or an
// empty string.
func beginning(word string, names []string) string {
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

// verbHint returns a hint for users who type a noun and a verb, such as "task ls". It returns an empty string if it has no hint.
func (line *Line) verbHint(noun, verb string) string {
	group, known := groupOf(noun)
	if !known || verb == "" {
		return ""
	}
	list := line.commands
	if c := commandNamed(list, group); c != nil {
		list = c.Subcommands
	}
	if c := commandNamed(list, verb); c != nil {
		return "runner " + strings.TrimSpace(group+" "+c.Name)
	}
	return commandSynonym(strings.TrimSpace(group + " " + verb))
}

// commandSynonym returns the hint for a command of another tool, or an empty string if there is none.
func commandSynonym(name string) string {
	for _, s := range CommandSynonyms {
		if slices.Contains(strings.Split(s.Names, ", "), name) {
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

// The method "unknown" returns the error for an option that does not exist in the command.
func (line *Line) unknown(name string) *failure.Error {
	f := failure.Usage("unknown option %s of %s", name, line.name())
	if line.Command == nil {
		f = failure.Usage("unknown option %s before the command", name)
	}
	return f.Hint("%s", line.optionHint(name))
}

// optionHint returns what the user probably meant with an unknown option: another option or a command line.
func (line *Line) optionHint(name string) string {
	if line.option("-"+name) != nil { // the user typed a long name after a single dash: -queue
		return "-" + name
	}
	long := strings.HasPrefix(name, "--")
	owned := func(c *Command) bool { return hasOption(c, name) }
	if line.Command == nil && long && slices.ContainsFunc(line.commands, owned) { // a letter can mean anything
		return "runner COMMAND " + name
	}
	if long && commandNamed(line.commands, name[2:]) != nil {
		return line.name() + " " + name[2:]
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
	return cmp.Or(humanize.Nearest(name, names), beginning(name, names), line.name()+" --help")
}

// hasOption reports whether a command has an option, such as --queue or -q.
func hasOption(c *Command, name string) bool {
	line := Line{options: optionsOf(c)}
	return line.option(name) != nil
}

// optionSynonym returns the hint for an option of another tool, or an empty string if there is none. If a hint begins with an option,
// optionSynonym returns it only for a command that has this option.
func (line *Line) optionSynonym(name string) string {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
	if letter := strings.TrimRight(name, "0123456789"); len(letter) == 1 { // -j4
		name = letter
	}
	path := strings.Join(line.Path, " ")
	for _, s := range OptionSynonyms {
		fits := s.Commands == anyCommand || slices.Contains(strings.Split(s.Commands, ", "), path)
		if first, _, _ := strings.Cut(s.Hint, " "); fits && slices.Contains(strings.Fields(s.Names), name) &&
			(first == "runner" || line.option(first) != nil) {
			return s.Hint
		}
	}
	return ""
}
