package kinds

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// HasContent reports whether an object writes more than an empty mapping at p.
func (o Object) HasContent(p ...string) bool {
	n := o.At(p...)
	return n != nil && !strict.IsNull(n) && len(n.Content) > 0
}

// Object is one rendered object: what a kustomize build of a target gave, with
// its variables substituted. Node is the mapping node of the whole object.
type Object struct {
	Ref  intent.ObjectRef
	Node *yaml.Node
}
