package kinds

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// HasContent reports whether the mapping or list at p is not empty.
func (o Object) HasContent(p ...string) bool {
	n := o.At(p...)
	return n != nil && !strict.IsNull(n) && len(n.Content) > 0
}

// Object is a rendered object: part of the output of a kustomize build, with its variables substituted. Node
// is the mapping node of the whole object.
type Object struct {
	Ref  intent.ObjectRef
	Node *yaml.Node
}
