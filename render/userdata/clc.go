package userdata

import (
	"errors"
	"fmt"

	clc "github.com/flatcar/container-linux-config-transpiler/config"
	v23 "github.com/flatcar/ignition/config/v2_3"
	v2 "github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate/report"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

const additionalField = "ignition.containerLinuxConfig.additionalConfig"

// maxContainerLinuxConfig bounds the input of the transpiler in bytes. It is the schema's limit.
const maxContainerLinuxConfig = 65535

// additional merges the user's Container Linux Config by Ignition's own rules: lists are joined, and for
// everything else the user's document wins.
func (b *ignitionBuilder) additional(o Ignition) {
	if o.AdditionalConfig == "" {
		return
	}
	if len(o.AdditionalConfig) > maxContainerLinuxConfig {
		b.fail(additionalField, "it has %d bytes; %d are allowed", len(o.AdditionalConfig), maxContainerLinuxConfig)
		return
	}
	added, entries, err := transpile(o.AdditionalConfig)
	if err != nil {
		b.fail(additionalField, "%v", err)
		return
	}
	for _, e := range entries {
		if e.Kind == report.EntryError || o.Strict && e.Kind != report.EntryInfo {
			b.fail(additionalField, "%s", describe(e))
		} else if e.Kind == report.EntryWarning || e.Kind == report.EntryDeprecated {
			b.warn(additionalField, describe(e))
		}
	}
	if !b.failed {
		b.config = v23.Append(b.config, added)
	}
}

// transpile parses a Container Linux Config. The transpiler was made for trusted input, so a panic counts as
// a fault of the input.
func transpile(text string) (config v2.Config, entries []report.Entry, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it cannot be read; write it without aliases")
		}
	}()
	parsed, ast, found := clc.Parse([]byte(text))
	if found.IsFatal() {
		return v2.Config{}, found.Entries, nil
	}
	config, converted := clc.Convert(parsed, "", ast)
	found.Merge(converted)
	return config, found.Entries, nil
}

// quotedWord matches a quoted part of a value in the YAML parser's messages.
var quotedWord = lazyregexp.New("`[^`]*`|\"[^\"]*\"")

// describe returns the text of a report's entry, without the values that it quotes, which may be secrets.
func describe(e report.Entry) string {
	message := quotedWord.ReplaceAllString(e.Message, "a value")
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, message)
	}
	return message
}
