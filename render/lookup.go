package render

import (
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// objectIndex finds the objects of a render. It is built at the first use, because only reports that explain
// fields need it, and then for every field of every pool.
type objectIndex struct {
	making sync.Once
	// nodes has the objects, and for duplicates the first one. names has the references by kind, namespace
	// and name, in the order of the build.
	nodes map[intent.ObjectRef]*yaml.Node
	names map[[3]string][]intent.ObjectRef
}

// build fills the index from the objects of the render at the first call, and returns it. Later calls ignore
// their argument, because a render has one list of objects.
func (l *objectIndex) build(objects []kinds.Object) *objectIndex {
	l.making.Do(func() {
		l.nodes, l.names = make(map[intent.ObjectRef]*yaml.Node, len(objects)), make(map[[3]string][]intent.ObjectRef, len(objects))
		for _, o := range objects {
			if l.nodes[o.Ref] == nil {
				l.nodes[o.Ref] = o.Node
			}
			id := [3]string{o.Ref.Kind, o.Ref.Namespace, o.Ref.Name}
			l.names[id] = append(l.names[id], o.Ref)
		}
	})
	return l
}

// manifests finds the YAML fields of pools in the rendered objects.
type manifests struct {
	*objectIndex
	cluster func(intent.Key) (intent.Cluster, bool)
}

// manifests returns the index of the rendered objects, for finding fields.
func (r *Result) manifests() manifests {
	return manifests{r.objects.build(r.Objects), r.Set.Cluster}
}

// sourceLine is a line of sources.
type sourceLine struct {
	field string
	// pattern has the elements of field, and path the elements of the manifest's field.
	pattern, path []string
	word          string
}

// sourceLines returns the lines of sources by the first element of their field.
var sourceLines = sync.OnceValue(func() map[string][]sourceLine {
	out := map[string][]sourceLine{}
	for line := range strings.Lines(sources) {
		if cells := strings.Fields(line); len(cells) == 3 {
			s := sourceLine{field: cells[0], pattern: strings.Split(cells[0], "."), word: cells[1], path: strings.Split(cells[2], ".")}
			out[s.pattern[0]] = append(out[s.pattern[0]], s)
		}
	}
	return out
})
