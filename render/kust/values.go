package kust

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/values"
	"go.yaml.in/yaml/v3"
)

// maxValues is the maximum size of a file with values, in bytes.
const maxValues = 64 << 10

// values returns the values in files of the tree. Later files override earlier ones. The given values
// override all files, because the tree must not change a value of the configuration.
func (r *reader) values(files []string, given map[string]string) map[string]string {
	if len(files) == 0 {
		return given
	}
	out := map[string]string{}
	for _, file := range files {
		found := r.valuesOf(file)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			v := found[name]
			out[name] = v.Text
			if _, fixed := given[name]; fixed {
				r.report(diag.Diagnostic{
					Severity: diag.Warning, Code: "value-ignored", Position: diag.Position{File: file, Line: v.Line, Column: v.Column},
					Summary: "the value of " + name + " has no effect: weir's configuration already sets it", Detail: diag.Hint("value-ignored"),
				})
			}
		}
	}
	maps.Copy(out, given)
	return out
}

// valuesOf reads one file and reports all faults in it.
func (r *reader) valuesOf(file string) map[string]values.Value {
	at := diag.Position{File: file}
	physical, e, err := r.view.resolve(file)
	var content []byte
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.add("missing-file", at, fmt.Sprintf("the file with values %s does not exist", file),
			"The target's varsFrom in weir's configuration names it. Add the file, with lines KEY=VALUE or a YAML mapping; it may be empty.")
		return nil
	case err == nil && e.Mode == tree.Dir:
		r.add("bad-path", at, fmt.Sprintf("%s is a directory, and the target's varsFrom names a file with values", file), "Put the values into a file, and correct the path.")
		return nil
	case err == nil:
		content, err = r.view.plain(physical)
	}
	switch {
	case err != nil:
		r.pathFault(file, at, err)
		return nil
	case len(content) > maxValues:
		r.report(faultAt("too-large", at, fmt.Sprintf("the file with values %s has %d bytes; at most %d are read", file, len(content), maxValues), "Remove values that no manifest of the target uses."))
		return nil
	case sops.Encrypted(physical, content):
		r.add("bad-values", at, fmt.Sprintf("the file with values %s is encrypted, but values in the repository must not be secret", file),
			"Put secret values into a file on weir's machine that varsFrom names with secret: true, or encrypt the manifests that hold them.")
		return nil
	}
	found, err := values.Parse(content)
	if err != nil {
		var fault *values.Fault
		if errors.As(err, &fault) {
			at.Line, at.Column = fault.Line, fault.Column
			err = errors.New(fault.Message)
		}
		r.add("bad-values", at, fmt.Sprintf("%s holds no values: %v", file, err), diag.Hint("bad-values"))
	}
	return found
}

// Unused returns the names that no variable of the build has. ok is false if nothing was built.
func (r *Result) Unused(names []string) (unused []string, ok bool) {
	if r.find.raw == nil {
		return nil, false
	}
	used := map[string]bool{}
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		variablesIn(n.Value, used)
		for _, c := range n.Content {
			visit(c)
		}
	}
	for _, n := range r.find.raw {
		visit(n)
	}
	for _, name := range names {
		if !used[name] {
			unused = append(unused, name)
		}
	}
	return unused, true
}

var leadingName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*`)

// variablesIn adds the variables in a text to used.
func variablesIn(text string, used map[string]bool) {
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			return
		}
		escaped := at > 0 && text[at-1] == '$'
		text = text[at+len("${"):]
		if name := leadingName.FindString(text); name != "" && !escaped {
			used[name] = true
		}
	}
}
