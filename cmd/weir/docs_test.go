package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docsRoot is the top of the sources, as tests of this package see it.
const docsRoot = "../.."

// docPages are the pages whose commands are run: the README and the
// documentation.
func docPages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(docsRoot, "deploy/docs"), func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == "reference" {
			return fs.SkipDir // made from the program itself
		}
		if err == nil && !e.IsDir() && strings.HasSuffix(name, ".md") {
			rel, relErr := filepath.Rel(docsRoot, name)
			pages, err = append(pages, filepath.ToSlash(rel)), relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestDocumentedCommands runs what the documentation tells its readers to type,
// on the real binary, page by page and from top to bottom in one shell. The
// first word after the language of a block says what is done with it:
//
//	```console run        lines that begin with "$ " are run, and what they print is compared
//	```sh run             the whole block is run
//	```console skip: WHY  it is not run, and why not
//
// Words after run: retry runs a command again until it prints what is shown,
// exit=N is the exit code of the block's last command, needs=PROGRAM leaves the
// block out where there is no such program. In what is shown, … stands for any
// text, and alone on a line for any lines. A comment <!-- sandbox: COMMANDS -->
// holds what a reader has done already. The addresses 127.0.0.1:8344 and :8345
// are replaced by free ones.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	for _, page := range docPages(t) {
		blocks, err := readBlocks(filepath.Join(docsRoot, page))
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		runs := false
		for _, b := range blocks {
			runs = runs || b.run
		}
		if !runs {
			continue
		}
		t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("with -short no daemon is started, as the commands of this page do")
			}
			s := newDocShell(t)
			for _, b := range blocks {
				if t.Failed() {
					return // what follows builds on it
				}
				s.do(t, page, b)
			}
		})
	}
}

// docBlock is a fenced block of commands, or a comment with some.
type docBlock struct {
	line     int
	run      bool
	retry    bool
	exit     int
	needs    string
	commands []docCommand
}

// docCommand is a command line and what a page shows of its output; nil for
// nothing shown.
type docCommand struct {
	line  int
	text  string
	shown []string
}

var sandboxComment = regexp.MustCompile(`^<!-- sandbox: (.*) -->$`)

// readBlocks reads the blocks of a page. Blocks of commands that say neither run
// nor skip are an error, and so are blocks without a language.
func readBlocks(name string) ([]docBlock, error) {
	content, err := os.ReadFile(name) //nolint:gosec // a page of the project
	if err != nil {
		return nil, err
	}
	var out []docBlock
	lines := strings.Split(string(content), "\n")
	for i := 0; i < len(lines); i++ {
		if m := sandboxComment.FindStringSubmatch(lines[i]); m != nil {
			out = append(out, docBlock{line: i + 1, run: true, commands: []docCommand{{line: i + 1, text: m[1]}}})
			continue
		}
		fence, info, found := strings.Cut(lines[i], "```")
		if !found || strings.TrimSpace(fence) != "" {
			continue
		}
		first := i + 1
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
		}
		b, err := readBlock(info, first, lines[first:min(i, len(lines))])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		out = append(out, b)
	}
	return out, nil
}

func readBlock(info string, first int, body []string) (docBlock, error) {
	b := docBlock{line: first}
	language, rest, _ := strings.Cut(info, " ")
	if language == "" {
		return b, fmt.Errorf("a block without a language: write text if there is none")
	}
	if language != "console" && language != "sh" {
		return b, nil
	}
	words := strings.Fields(rest)
	switch {
	case len(words) > 1 && words[0] == "skip:":
		return b, nil
	case len(words) == 0 || words[0] != "run":
		return b, fmt.Errorf("a block of commands says neither run nor skip: and why")
	}
	b.run = true
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "retry":
			b.retry = true
		case "needs":
			b.needs = value
		case "exit":
			if _, err := fmt.Sscanf(value, "%d", &b.exit); err != nil {
				return b, fmt.Errorf("%q: %w", w, err)
			}
		default:
			return b, fmt.Errorf("a block of commands has the unknown word %q", w)
		}
	}
	if language == "sh" {
		b.commands = []docCommand{{line: first, text: strings.Join(body, "\n")}}
		return b, nil
	}
	return b, b.console(first, body)
}

// console splits a block into commands, which begin with "$ " and go on after a
// backslash or in lines that begin with "> ", and what they print.
func (b *docBlock) console(first int, body []string) error {
	goesOn := false
	for i, line := range body {
		text, command := strings.CutPrefix(line, "$ ")
		more, continued := strings.CutPrefix(line, "> ")
		if line == ">" {
			more, continued = "", true
		}
		last := len(b.commands) - 1
		switch {
		case command:
			b.commands = append(b.commands, docCommand{line: first + 1 + i, text: text})
			continued = true
		case last < 0:
			return fmt.Errorf("a block of commands does not begin with one")
		case continued && b.commands[last].shown == nil:
			b.commands[last].text += "\n" + more
		case goesOn:
			b.commands[last].text += "\n" + line
			continued = true
		default:
			b.commands[last].shown = append(b.commands[last].shown, line)
		}
		goesOn = continued && strings.HasSuffix(line, `\`)
	}
	return nil
}
