package manifest

import (
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// decodeNode accepts what the type's fields accept, and for a bare string, which
// a published example of CAPA shows, says what to write.
func (v *AWSResourceReference) decodeNode(d *decoder, n *yaml.Node, p intent.Path) {
	if s, ok := textOf(n); ok {
		d.error(p, "wrong-type", p.String()+" must be a mapping, not text", "write `- id: "+s+"` instead of `- "+s+"`")
		return
	}
	type plain AWSResourceReference
	decodeInto(d, n, (*plain)(v), p)
}
