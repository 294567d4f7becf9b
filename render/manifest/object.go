package manifest

import (
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Object is one rendered object: what a kustomize build of a target gave, with
// its variables substituted. Node is the mapping node of the whole object.
type Object struct {
	Ref  intent.ObjectRef
	Node *yaml.Node
}
