package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"go.yaml.in/yaml/v3"
)

// mostUses bounds the places that a finding lists for a variable without a value.
const mostUses = 100

// gathered merges the findings about each variable without a value into one, which lists all places that use
// the variable.
func gathered(list diag.List) diag.List {
	type use struct{ summary, at string }
	first, seen := map[string]int{}, map[use]bool{}
	more := map[int]int{}
	var out diag.List
	for _, d := range list {
		if d.Code != "unset-variable" {
			out = append(out, d)
			continue
		}
		at := d.Position.String()
		if !d.Known() {
			at = d.Object + " " + d.Field
		}
		if seen[use{d.Summary, at}] {
			continue
		}
		seen[use{d.Summary, at}] = true
		i, known := first[d.Summary]
		switch {
		case !known:
			first[d.Summary] = len(out)
			out = append(out, d)
		case len(out[i].Related) >= mostUses:
			more[i]++
		default:
			out[i].Related = append(out[i].Related, diag.Related{Position: d.Position, Message: strings.TrimSpace("used here too: " + d.Object + " " + d.Field)})
		}
	}
	for i, n := range more {
		out[i].Detail += fmt.Sprintf(" It is used in %d places more than those that are named.", n)
	}
	return out
}

// despiteUnset are the codes of findings that no value of a variable can fix. Users see them together with
// the findings about variables.
var despiteUnset = []string{"unknown-field", "wrong-type", "bad-enum", "missing-required"}

// checkUnset reports such findings about objects that have variables without a value. It skips fields with a
// variable, and derives nothing from the objects.
func (dec *decoding) checkUnset() {
	dec.find(slices.DeleteFunc(unsetFaults(dec.secrets.built.Public), func(f kinds.Fault) bool {
		return dec.secrets.built.Masked(f.Summary) != f.Summary || dec.secrets.secretAt(f.Ref, f.Path)
	}))
	dec.of.Diags = dec.of.Diags.Hinted().Sorted()
}

// secretAt reports whether a field contains a secret.
func (s secrecy) secretAt(ref intent.ObjectRef, p intent.Path) bool {
	for _, o := range s.built.Public {
		if n := o.Node; o.Ref == ref {
			for _, e := range p {
				if next := child(n, e); next != nil {
					n = next
				}
			}
			return s.built.Masked(n.Value) != n.Value
		}
	}
	return false
}

// unsetFaults returns the errors in the objects that no value of a variable can fix. It ignores fields that
// contain a variable.
func unsetFaults(objects []kinds.Object) []kinds.Fault {
	var out []kinds.Fault
	for _, o := range objects {
		decoded, ok := manifest.Decode(o)
		if !ok {
			continue
		}
		for _, f := range decoded.Faults {
			if f.Severity == diag.Error && slices.Contains(despiteUnset, f.Code) && !holdsVariable(o.Node, f.Path) {
				out = append(out, f)
			}
		}
	}
	return out
}

// holdsVariable reports whether the field at p has a variable, or, if the field is missing, a key next to it.
func holdsVariable(n *yaml.Node, p intent.Path) bool {
	for _, elem := range p {
		var next *yaml.Node
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if strings.Contains(n.Content[i].Value, "${") {
				return true
			}
			if n.Content[i].Value == elem {
				next = n.Content[i+1]
			}
		}
		for i, c := range n.Content {
			if n.Kind == yaml.SequenceNode && intent.Index(i) == elem {
				next = c
			}
		}
		if next == nil {
			return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${")
		}
		n = next
	}
	return variableBelow(n)
}

func variableBelow(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${") || slices.ContainsFunc(n.Content, variableBelow)
}
