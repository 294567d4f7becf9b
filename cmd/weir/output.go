package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/terminal"
)

// The output formats.
const (
	outputText     = "text"
	outputJSON     = "json"
	outputMarkdown = "markdown"
	outputYAML     = "yaml"
	outputIntents  = "intents"
	outputSARIF    = "sarif"
	outputSVG      = "svg"
	// outputIntentsJSON is the JSON form of outputIntents.
	outputIntentsJSON = "intents-json"
	outputGitHub      = "github"
)

// choice is a flag whose value must be one of a few words.
type choice struct {
	value *string
	words []string
}

// String returns the value.
func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type returns the name of the type in help texts.
func (c choice) Type() string { return strings.Join(c.words, "|") }

// Set rejects a word that is not one of the choices.
func (c choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("want %s", strings.Join(c.words, ", "))
	}
	*c.value = word
	return nil
}

// outputFlag adds -o with the formats of a command. The first is the default.
func outputFlag(c *cobra.Command, value *string, forms ...string) {
	*value = forms[0]
	c.Flags().VarP(choice{value, forms}, "output", "o", "form of the output")
	complete(c, "output", func(string) []string { return forms })
}

// value prints v as JSON, or as YAML converted from that JSON. It redacts secrets before the conversion,
// while each text is still in one piece.
func (s surroundings) value(form string, v any) error {
	var b bytes.Buffer
	if err := terminal.JSON(&b, v); err != nil {
		return err
	}
	text := []byte(s.secrets.Redact(b.String()))
	if form == outputYAML {
		var err error
		if text, err = terminal.YAML(text); err != nil {
			return err
		}
	} else {
		text = []byte(visible.JSON(string(text)))
	}
	if _, err := s.stdout.Write(text); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

// complete sets the words that complete a flag's value.
func complete(c *cobra.Command, flag string, words func(prefix string) []string) {
	err := c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words(prefix), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist, which is a bug in this program
	}
}
