// Command sample prints random comments of the source and random sentences of
// README.md, the docs and the help. A reader who didn't write them counts the
// comments and sentences that are hard to understand. Each is printed with its
// context, because people read it there. The context of a comment is the line
// of code that it belongs to. The context of a sentence is the sentence before
// it. The first sentence of a paragraph has its heading instead, and in a table
// also the first cell of its row. The same seed gives the same sample of the
// same source.
//
//	go run ./test/sample -seed 7 [-n 100]
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// text is a comment or a sentence, with its location and the context in which
// people read it.
type text struct {
	at, words string
	context   string // line that is printed below the text; may be empty
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the sample")
	n := flag.Int("n", 100, "comments, and sentences")
	flag.Parse()
	comments, err := allComments(".")
	if err == nil {
		var sentences []text
		if sentences, err = allSentences(); err == nil {
			draw(fmt.Sprintf("%d of %d comments", *n, len(comments)), comments, *n, *seed)
			draw(fmt.Sprintf("%d of %d sentences", *n, len(sentences)), sentences, *n, *seed)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
}

// draw prints n of the texts in random order.
func draw(title string, all []text, n int, seed uint64) {
	fmt.Printf("# %s, seed %d\n\n", title, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i, at := range random.Perm(len(all))[:min(n, len(all))] {
		fmt.Printf("%3d. %s\n     %s\n", i+1, all[at].at, all[at].words)
		if all[at].context != "" {
			fmt.Printf("     > %s\n", all[at].context)
		}
	}

	fmt.Println()
}

// allComments returns the comments in all Go files below dir. Adjacent lines
// form one comment. Comments without words are left out.
func allComments(dir string) (list []text, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}

		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}

		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.ParseComments)
		if err != nil {
			return err
		}

		lines := strings.Split(string(source), "\n")
		for _, group := range file.Comments {
			if comment := commentText(group); strings.Contains(comment, " ") {
				start, end := files.Position(group.Pos()), files.Position(group.End())
				list = append(list, text{fmt.Sprintf("%s:%d", path, start.Line), comment, codeOf(lines, start, end)})
			}
		}

		return nil
	})
	return list, err
}

// codeOf returns the line of code that a comment belongs to. This is the code
// in front of the comment, or else the next line.
func codeOf(lines []string, start, end token.Position) string {
	if code := strings.TrimSpace(lines[start.Line-1][:start.Column-1]); code != "" {
		return code
	}
	return strings.TrimSpace(lines[min(end.Line, len(lines)-1)])
}

// commentText returns a comment as one line. It leaves out directives such as
// //go:build.
func commentText(group *ast.CommentGroup) string {
	return strings.Join(strings.Fields(group.Text()), " ")
}

// allSentences returns the sentences in README.md, in the pages in docs, and in
// the help.
func allSentences() (list []text, err error) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		return nil, err
	}

	for _, page := range append([]string{"README.md"}, pages...) {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		list = append(list, pageSentences(page, string(content))...)
	}

	dir, err := os.MkdirTemp("", "sample")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	program := filepath.Join(dir, "runner")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}

	help, err := helpSentences(program, nil)
	return append(list, help...), err
}

// pageSentences returns the sentences in the paragraphs, lists and tables of a
// Markdown page. It leaves out code blocks and headings.
func pageSentences(page, content string) (list []text) {
	var paragraph []string
	start := 0
	heading, row := "", ""
	end := func() {
		context := heading
		if row != "" {
			context += " | " + row
		}
		for _, s := range sentences(strings.Join(paragraph, " ")) {
			list = append(list, text{fmt.Sprintf("%s:%d", page, start), s, context})
			context = s
		}

		paragraph = nil
	}
	code := false
	for i, line := range strings.Split(content, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			end()
			code = !code
		case code:
		case strings.HasPrefix(trimmed, "#"):
			end()
			heading = strings.TrimLeft(trimmed, "# ")
		case trimmed == "" || strings.HasPrefix(trimmed, "<") || strings.HasPrefix(trimmed, "!["):
			end()
		case strings.HasPrefix(trimmed, "|"):
			end()
			cells := strings.Split(strings.Trim(trimmed, "|"), " | ")
			for _, cell := range cells {
				start, paragraph = i+1, []string{cell}
				end()
				row = strings.TrimSpace(cells[0])
			}
			row = ""
		default:
			if item.MatchString(trimmed) {
				end()
				trimmed = item.ReplaceAllString(trimmed, "")
			}
			if len(paragraph) == 0 {
				start = i + 1
			}
			paragraph = append(paragraph, trimmed)
		}
	}

	end()
	return list
}

var (
	words    = regexp.MustCompile(`[A-Za-z]{2,}`)
	item     = regexp.MustCompile(`^([*-]|\d+\.) +`)
	boundary = regexp.MustCompile("([.?!][)\"”`]?) +([A-Z`\"(*\\[0-9])")
	entry    = regexp.MustCompile(`^ {2,}(\S.*?) {2,}(\S.*)$`)
)

// sentences splits a paragraph into sentences. It leaves out sentences with
// fewer than three words. Numbers do not count as words.
func sentences(paragraph string) []string {
	split := strings.Split(boundary.ReplaceAllString(strings.Join(strings.Fields(paragraph), " "), "$1\n$2"), "\n")
	return slices.DeleteFunc(split, func(s string) bool { return len(words.FindAllString(s, 3)) < 3 })
}

// helpSentences returns the sentences in the help of a command and of its
// subcommands. The line of an option counts as a sentence.
func helpSentences(program string, command []string) (list []text, err error) {
	page := strings.Join(append([]string{"runner"}, append(command, "--help")...), " ")
	out, err := exec.Command(program, append(slices.Clone(command), "--help")...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", page, err, out)
	}

	global := false
	for block := range strings.SplitSeq(string(out), "\n\n") {
		if strings.HasPrefix(block, "usage:") || strings.HasPrefix(block, "database:") {
			continue
		}

		global = strings.HasPrefix(block, "GLOBAL OPTIONS")
		if global && len(command) > 0 { // skip the global options, which are the same in the help of every command
			continue
		}

		list = append(list, blockSentences(page, block)...)
		if strings.HasPrefix(block, "COMMANDS\n") || len(command) == 0 && !global {
			for line := range strings.Lines(block) {
				if name, ok := subcommand(line, command); ok &&
					exec.Command(program, append(slices.Clone(command), name, "--help")...).Run() == nil {
					more, err := helpSentences(program, append(slices.Clone(command), name))
					if err != nil {
						return nil, err
					}
					list = append(list, more...)
				}
			}
		}
	}

	return list, nil
}

// subcommand returns the subcommand in a line of the help, if it has one.
// command is whose help this is, as a list of words.
func subcommand(line string, command []string) (string, bool) {
	words := regexp.MustCompile(` {2,}`).Split(strings.TrimRight(line, "\n"), -1)
	if len(words) < 3 || words[0] != "" {
		return "", false
	}
	name := words[len(words)-2]
	return name, regexp.MustCompile(`^[a-z]+$`).MatchString(name) && (len(command) > 0 || len(words) <= 4)
}

// blockSentences returns the sentences in a block of the help, which is a list
// or a paragraph.
func blockSentences(page, block string) (list []text) {
	var paragraph []string
	end := func() {
		context := ""
		for _, s := range sentences(strings.Join(paragraph, " ")) {
			list = append(list, text{page, s, context})
			context = s
		}
		paragraph = nil
	}
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if m := entry.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "          ") {
			end()
			paragraph = []string{m[1] + ":", m[2]}
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(line, " "), "-") {
			end()
		}
		if line == strings.ToUpper(line) { // skip the title of a list, which is in capitals
			continue
		}

		paragraph = append(paragraph, strings.TrimSpace(line))
	}

	end()
	return list
}
