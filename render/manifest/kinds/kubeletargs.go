package kinds

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/userdata"
	"go.yaml.in/yaml/v3"
)

// kubeletArgs are kubeletExtraArgs: a mapping in v1beta1, a list of names and
// values, in which a name may come again, in v1beta2.
type kubeletArgs []userdata.Arg

// kubeletArg is one argument in v1beta2.
type kubeletArg struct {
	Name  string `json:"name" check:"required,minlen=1"`
	Value string `json:"value" check:"required"`
}

func (v *kubeletArgs) decodeNode(d *decoder, n *yaml.Node, p intent.Path) {
	if d.version != "v1beta2" {
		var m map[string]string
		decodeInto(d, n, &m, p)
		for name, value := range m {
			*v = append(*v, userdata.Arg{Name: name, Value: value})
		}
		slices.SortFunc(*v, func(a, b userdata.Arg) int { return cmp.Compare(a.Name, b.Name) })
		return
	}
	if n.Kind == yaml.MappingNode {
		d.Error(p, "wrong-type", p.String()+" must be a list in v1beta2, not a mapping", "write each argument as `- name: …` and `value: …`")
		return
	}
	var list []kubeletArg
	decodeInto(d, n, &list, p)
	for _, a := range list {
		*v = append(*v, userdata.Arg{Name: a.Name, Value: a.Value})
	}
}
