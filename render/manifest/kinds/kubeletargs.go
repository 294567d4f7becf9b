package kinds

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"github.com/weir-gitops/weir/render/userdata"
	"go.yaml.in/yaml/v3"
)

// kubeletArgs are kubeletExtraArgs. In v1beta1 this is a mapping, in v1beta2 a list of names and values in
// which a name may repeat.
type kubeletArgs []userdata.Arg

// kubeletArg is one argument in v1beta2.
type kubeletArg struct {
	Name  string `json:"name" check:"required"`
	Value string `json:"value" check:"required"`
}

// DecodeYAML decodes a list in v1beta2, and a mapping in earlier versions, which it sorts by name.
func (v *kubeletArgs) DecodeYAML(d *strict.Decoder, n *yaml.Node, p intent.Path) {
	if d.Version != "v1beta2" {
		var m map[string]string
		d.Read(n, &m, p)
		for name, value := range m {
			*v = append(*v, userdata.Arg{Name: name, Value: value})
		}
		slices.SortFunc(*v, func(a, b userdata.Arg) int { return cmp.Compare(a.Name, b.Name) })
		return
	}
	if n.Kind == yaml.MappingNode {
		d.Error(n, p, "wrong-type", p.String()+" must be a list in v1beta2, not a mapping", "write each argument as `- name: …` and `value: …`")
		return
	}
	var list []kubeletArg
	d.Read(n, &list, p)
	for _, a := range list {
		*v = append(*v, userdata.Arg{Name: a.Name, Value: a.Value})
	}
}

// Show returns the arguments as an API version writes them: as a list for v1beta2, and otherwise as a mapping.
// The result is nil if the arguments are not set.
func (v kubeletArgs) Show(version string) any {
	if v == nil {
		return nil
	}
	list, mapping := make([]kubeletArg, len(v)), map[string]string{}
	for i, a := range v {
		list[i], mapping[a.Name] = kubeletArg{a.Name, a.Value}, a.Value
	}
	if version == "v1beta2" {
		return list
	}
	return mapping
}

func (*kubeletArgs) schema(of schemer) *Schema {
	if of.version == "v1beta2" {
		return of.schema(reflect.TypeFor[[]kubeletArg]())
	}
	return of.schema(reflect.TypeFor[map[string]string]())
}
