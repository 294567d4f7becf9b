package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandTree is the program's commands, as they are without surroundings.
func commandTree() *cobra.Command {
	return newRoot(surroundings{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}.guarded())
}

// TestReferenceOfCommands keeps the reference of the command line up to date.
func TestReferenceOfCommands(t *testing.T) {
	var b strings.Builder
	root := commandTree()
	b.WriteString("# The command line\n\nMade from the commands themselves; `weir help COMMAND` prints the same.\n\n| Command | Does |\n| --- | --- |\n")
	for _, c := range root.Commands() {
		if !c.Hidden {
			fmt.Fprintf(&b, "| [%s](#weir-%s) | %s |\n", c.Name(), c.Name(), c.Short)
		}
	}
	b.WriteString("\n## All commands\n\n")
	flagTable(&b, root.PersistentFlags())
	b.WriteString("\nExit codes; if several apply, weir exits with the first of 1, 4, 3, 2:\n\n| Code | When | Command |\n| --- | --- | --- |\n")
	for _, e := range exitCodes {
		of := "all"
		if e.only != "" {
			of = "`" + e.only + "`"
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", e.code, e.when, of)
	}
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(&b, "\n## weir %s\n\n```\n%s\n```\n\n```text\n%s\n```\n\nExamples:\n\n```\n%s\n```\n", c.Name(), c.UseLine(), strings.TrimSpace(c.Long), unindented(c.Example))
		if c.LocalNonPersistentFlags().HasFlags() {
			b.WriteByte('\n')
			flagTable(&b, c.LocalNonPersistentFlags())
		}
	}
	generated(t, "docs/reference/cli.md", b.String())
}

func unindented(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| Flag | Value | Default | What |\n| --- | --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		kind, what := pflag.UnquoteUsage(f)
		byDefault := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0s" {
			byDefault = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, cell(kind), byDefault, cell(what))
	})
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// TestReferenceOfTheConfiguration keeps the reference of the configuration up to
// date: all keys of its schema, in the order of their paths.
func TestReferenceOfTheConfiguration(t *testing.T) {
	var root schemaNode
	if err := json.Unmarshal([]byte(output(t, "schema", "config")), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# The configuration\n\nMade from the schema that `weir schema config` prints. Unknown keys are errors, and secrets stand in files alone.\n")
	b.WriteString("Of lists, `[]` stands for each entry, and of mappings `{}`.\n\n| Key | Value | Default | What |\n| --- | --- | --- | --- |\n")
	root.keys(&b, "")
	text := b.String()
	if strings.Count(text, "\n| `") < 60 || !strings.Contains(text, "`targets[].prune.limit`") {
		t.Errorf("the schema was not walked to its ends:\n%s", text)
	}
	generated(t, "docs/reference/configuration.md", text)
}

// schemaNode is what the reference says of a schema.
type schemaNode struct {
	Description string                `json:"description"`
	Default     any                   `json:"default"`
	Enum        []any                 `json:"enum"`
	Type        any                   `json:"type"`
	Properties  map[string]schemaNode `json:"properties"`
	Items       *schemaNode           `json:"items"`
	Required    []string              `json:"required"`
	AnyOf       []schemaNode          `json:"anyOf"`
	// Rest is false, or what each entry of a mapping is.
	Rest json.RawMessage `json:"additionalProperties"`
}

func (n schemaNode) keys(b *strings.Builder, path string) {
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		child := n.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		what := child.Description
		if rest, ok := strings.CutPrefix(what, name+" "); ok {
			rest = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are ")
			what = strings.ToUpper(rest[:1]) + rest[1:]
		}
		if slices.Contains(n.Required, name) {
			what = strings.TrimSpace("Required. " + what)
		}
		byDefault := ""
		if child.Default != nil {
			byDefault = fmt.Sprintf("`%v`", child.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", at, child.kind(), byDefault, cell(what))
		child.keys(b, at)
		if child.Items != nil {
			child.Items.keys(b, at+"[]")
		}
		var entry schemaNode
		if json.Unmarshal(child.Rest, &entry) == nil {
			entry.keys(b, at+"{}")
		}
	}
}

// kind is what a key takes, in a word or two.
func (n schemaNode) kind() string {
	var words []string
	for _, e := range n.Enum {
		if s, ok := e.(string); ok && s != "" {
			words = append(words, "`"+s+"`")
		}
	}
	types := fmt.Sprint(n.Type)
	switch {
	case len(words) > 0:
		return strings.Join(words, ", ")
	case n.Items != nil:
		return "list"
	case len(n.Properties) > 0:
		return "section"
	case strings.Contains(types, "object"):
		return "names and values"
	case strings.Contains(types, "boolean") && !strings.Contains(types, "string"):
		return "true or false"
	case len(n.AnyOf) > 0:
		return n.AnyOf[0].kind()
	case strings.Contains(types, "integer"):
		return "number"
	}
	return "text"
}

// TestEveryErrorSaysWhatToDo gives each command something wrong: the error ends
// with a hint, and standard output stays empty.
func TestEveryErrorSaysWhatToDo(t *testing.T) {
	wrong := map[string][][]string{
		"accept":     {{}, {"t"}, {"t", "p", "--address", "http://127.0.0.1:1"}, {"t", "p", "--address", "x", "--config", "y"}},
		"adopt":      {{}, {"nowhere", "--region", "eu-west-1"}, {"--config", "nowhere.yaml"}, {".", "--region", "x"}, {".", "--from", "A_B"}},
		"apply":      {{}, {"nowhere", "--region", "eu-west-1"}, {"--config", "nowhere.yaml"}, {".", "--timeout", "1s"}, {".", "--wait", "--timeout", "-1s"}},
		"approve":    {{}, {"a", "b"}, {"x", "--address", "http://127.0.0.1:1", "--config", "y"}, {"x", "--address", "http://127.0.0.1:1"}},
		"completion": {{}, {"tcsh"}},
		"demo":       {{"x"}},
		"doctor":     {{}, {"--region", "x"}, {"--region", "eu-west-1", "--cluster", "c"}, {"--region", "eu-west-1", "--apply", "--clean"}, {"--region", "eu-west-1", "--apply", "--cluster", "c"}, {"--region", "eu-west-1", "--endpoint-url", "x"}, {"--region", "eu-west-1", "--visit", "n1"}, {"--region", "eu-west-1", "--clean", "--visit", "a-b"}},
		"emulator":   {{}, {"--listen", "127.0.0.1:0", "--quota", "x"}},
		"explain":    {{"no-such-code"}, {}},
		"history":    {{"--limit", "0"}, {"--since", "x"}, {"--address", "a", "--config", "b"}, {"--passes", "--kind", "x"}, {"--config", "nowhere.yaml"}, {"--address", "http://127.0.0.1:1"}},
		"import":     {{}, {"--region", "x"}, {"--region", "eu-west-1"}, {"--region", "eu-west-1", "-o", "."}, {"--region", "eu-west-1", "-o", "new", "--tag", "x"}, {"--region", "eu-west-1", "-o", "new", "--endpoint-url", "x"}, {"--region", "eu-west-1", "-o", "new", "--field", "x"}, {"--region", "eu-west-1", "--update", ".", "-o", "new"}, {"--region", "eu-west-1", "--update", "nowhere"}},
		"instance":   {{}, {"web"}, {"i-01234567", "i-01234568"}, {"i-01234567", "--region", "x"}, {"i-01234567", "--account", "111122223333"}, {"i-01234567", "--region", "eu-west-1", "--account", "1"}, {"i-01234567", "--region", "eu-west-1", "--config", "x"}, {"i-01234567", "--region", "eu-west-1", "--endpoint-url", "x"}, {"i-01234567", "--config", "nowhere.yaml"}, {"i-01234567", "--address", "http://127.0.0.1:1"}},
		"plan":       {{}, {"nowhere", "--region", "eu-west-1"}, {"--config", "nowhere.yaml"}, {".", "--region", "x"}, {".", "--endpoint-url", "x"}, {".", "-o", "sarif"}},
		"policy":     {{}, {"x"}, {"--config", "nowhere.yaml"}, {"--trust", "x"}, {"--account", "1", "--region", "eu-west-1", "--instance", "x"}},
		"reconcile":  {{"--override-window"}, {"--address", "http://127.0.0.1:1"}},
		"render":     {{}, {"nowhere"}},
		"resume":     {{}, {"t", "p", "--all"}, {"t", "--address", "http://127.0.0.1:1"}},
		"run":        {{}, {"--config", "nowhere.yaml"}, {"x"}},
		"schema":     {{"NoSuchKind"}, {"--all", "config"}},
		"state":      {{}, {"x"}, {"move"}, {"move", "--config", "nowhere.yaml", "--to", "nowhere.yaml"}},
		"simulate":   {{}, {"nowhere", "--region", "eu-west-1"}, {"--config", "nowhere.yaml"}, {".", "--region", "x"}, {".", "--region", "eu-west-1", "--machine-ready", "0s"}, {".", "-o", "markdown"}, {"--ref", "x"}},
		"status":     {{"--address", "http://127.0.0.1:1"}, {"--phase", "x"}, {"--watch", "-o", "json"}, {"--interval", "5s"}, {"--config", "nowhere.yaml"}, {".", "--region", "x"}},
		"suspend":    {{}, {"t"}, {"t", "--reason", "r"}, {"t", "--reason", "r", "--for", "1h", "--address", "http://127.0.0.1:1"}},
		"validate":   {{}, {"nowhere"}},
		"version":    {{"x"}},
		"rollout":    {{}, {"x"}, {"list", "x"}, {"list", "--address", "http://127.0.0.1:1"}, {"show"}, {"pause"}, {"abort", "n", "--address", "http://127.0.0.1:1"}},
		"take":       {{}, {"s", "--address", "http://127.0.0.1:1"}},
		"members":    {{"x"}, {"--address", "http://127.0.0.1:1"}},
		"unapprove":  {{}, {"a", "b"}, {"x", "--address", "http://127.0.0.1:1", "--config", "y"}, {"x", "--address", "http://127.0.0.1:1"}},
		"drain":      {{"x"}, {"--address", "http://127.0.0.1:1"}},
	}
	for _, c := range commandTree().Commands() {
		if c.Hidden {
			continue
		}
		if len(wrong[c.Name()]) == 0 {
			t.Errorf("%s: nothing wrong is tried", c.Name())
		}
		for _, args := range append(wrong[c.Name()], []string{"--no-such-flag"}, []string{"--color", "pink"}) {
			args = append([]string{c.Name()}, args...)
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				var out, errs strings.Builder
				code := run(t.Context(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }})
				lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
				if code != exitError || out.String() != "" || !strings.HasPrefix(lines[len(lines)-1], "hint: ") || !strings.Contains(errs.String(), "weir: ") {
					t.Errorf("exit %d, output %q, want 1, none and a hint:\n%s", code, out.String(), errs.String())
				}
			})
		}
	}
}
