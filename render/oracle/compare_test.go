package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// compare holds weir against the others over one manifest, and notes how they
// differ: who refuses it, or which values they read.
func compare(t testing.TB, found findings, s server, text string) {
	t.Helper()
	theirs := s.admit(text)
	own := decoded(t, s.subject, text)
	refusals := map[string]string{}
	for _, f := range own.Faults {
		if f.Severity == diag.Error {
			refusals[general(f.Path)] = f.Code
		}
	}
	switch {
	case len(theirs.refused) == 0 && len(refusals) == 0:
		compareValues("spec", theirs.spec, own.Spec, func(path, what string) {
			found.add(finding{"accept", s.name(), path, what}, text)
		})
	case len(theirs.refused) == 0:
		for path, code := range refusals {
			found.add(finding{"accept", s.name(), path, "weir refuses: " + code}, text)
		}
	case len(refusals) == 0:
		path := slices.Sorted(maps.Keys(theirs.refused))[0]
		found.add(finding{"accept", s.name(), generalText(path), "they refuse"}, theirs.refused[path]+"\n"+text)
	}
}

func decoded(t testing.TB, s subject, text string) manifest.Decoded {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		return manifest.Decoded{Faults: []kinds.Fault{{Code: "bad-yaml"}}}
	}
	var meta struct {
		Metadata struct{ Name, Namespace string }
	}
	if err := doc.Decode(&meta); err != nil {
		return manifest.Decoded{Faults: []kinds.Fault{{Code: "bad-yaml"}}}
	}
	ref := intent.ObjectRef{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: meta.Metadata.Namespace, Name: meta.Metadata.Name}
	out, ok := manifest.Decode(kinds.Object{Ref: ref, Node: doc.Content[0]})
	if !ok {
		t.Fatalf("weir does not read %s", s.name())
	}
	return out
}

// general is a path with [] for positions and {} for keys.
func general(p intent.Path) string {
	var b strings.Builder
	for i, e := range p {
		switch {
		case i > 0 && free(p[i-1]):
			b.WriteString("{}")
		case strings.HasPrefix(e, "["):
			b.WriteString("[]")
		case i > 0:
			b.WriteString("." + e)
		default:
			b.WriteString(e)
		}
	}
	return b.String()
}

// generalText is general for the paths of the others, which write positions as
// [0], as .0 or not at all.
func generalText(p string) string {
	var out []string
	for _, e := range strings.Split(p, ".") {
		name, index, ok := strings.Cut(e, "[")
		if _, err := strconv.Atoi(strings.TrimSuffix(index, "]")); ok && err == nil {
			e = name + "[]"
		}
		if _, err := strconv.Atoi(e); err == nil && len(out) > 0 {
			out[len(out)-1] += "[]"
			continue
		}
		out = append(out, e)
	}
	return strings.Join(out, ".")
}

// compareValues compares two values as JSON has them. An absent field equals an
// empty one: the others' types have fields that are never absent.
func compareValues(path string, theirs, own any, note func(path, what string)) {
	a, isMap := theirs.(map[string]any)
	b, ownMap := own.(map[string]any)
	if isMap || ownMap {
		for name := range union(a, b) {
			at := path + "." + name
			if free(path[strings.LastIndex(path, ".")+1:]) {
				at = path + "{}"
			}
			compareValues(at, a[name], b[name], note)
		}
		return
	}
	x, isList := theirs.([]any)
	y, ownList := own.([]any)
	if isList && ownList && len(x) == len(y) {
		for i := range x {
			compareValues(path+"[]", x[i], y[i], note)
		}
		return
	}
	if !reflect.DeepEqual(theirs, own) && (!empty(theirs) || !empty(own)) {
		note(path, "other value")
	}
}

// free reports whether the keys below a field are the writer's own.
func free(field string) bool {
	return slices.Contains([]string{"additionalTags", "labels", "tags", "annotations", "kubeletExtraArgs", "featureGates", "matchLabels", "securityGroupOverrides"}, field)
}

func union(a, b map[string]any) map[string]bool {
	out := map[string]bool{}
	for k := range a {
		out[k] = true
	}
	for k := range b {
		out[k] = true
	}
	return out
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return cmp.Or(v == "", v == false, v == int64(0), v == "0s")
}

// document writes a manifest with a spec, in JSON, which is YAML.
func document(s subject, body any) string {
	metadata := `{"name": "web", "namespace": "default"}`
	if strings.HasSuffix(s.Kind, "Identity") {
		metadata = `{"name": "default"}` // the only name of a controller identity
	}
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": %s, "spec": %s}`, s.APIVersion, s.Kind, metadata, printed(body))
}
