package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// maxBytes is the maximum size of a configuration.
const maxBytes = 4 << 20

// language describes the language of configurations.
var language = &strict.Language{Tag: "yaml", Whole: "the configuration", Code: "unknown-key"}

// decoder decodes a Config and records the position of each value, for the messages of later checks.
type decoder struct {
	file   string
	faults diag.List
	at     map[string]diag.Position // by path, such as targets[0].region
}

// document parses content, and reports whether it contains a mapping to validate.
func (d *decoder) document(content []byte, into *Config) bool {
	in := &strict.Decoder{Language: language, Report: func(f strict.Fault) {
		found := f.In(d.file)
		if f.Code == "empty" {
			found.Detail = "start with apiVersion: " + APIVersion + " and kind: " + Kind
		}
		d.faults = append(d.faults, found)
	}, Visit: func(p intent.Path, n *yaml.Node) {
		d.at[strings.ReplaceAll(strings.Join(p, "."), ".[", "[")] = diag.Position{File: d.file, Line: n.Line, Column: n.Column}
	}}
	root := in.Parse(content, maxBytes)
	if root == nil {
		return false
	}
	in.Decode(root, into)
	return root.Kind == yaml.MappingNode
}

// Versions is a number of launch template versions.
type Versions int32

// maxVersions leaves room for the newest version and the next one within EC2's quota of 10,000 versions for
// a launch template.
const maxVersions = 9998

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Versions) UnmarshalText(b []byte) error {
	text := string(b)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 || n > maxVersions || strings.HasPrefix(text, "+") {
		return fmt.Errorf("%q is not a valid number of versions: write 1 to %d", text, maxVersions)
	}
	*v = Versions(n)
	return nil
}
