package kinds

import (
	"slices"

	"github.com/weir-gitops/weir/render/intent"
)

// TypeField is an instance type and its field.
type TypeField struct {
	At   intent.Path
	Name string
	// replaced is true if overrides replace the type, so that it is not launched.
	replaced bool
}

// GroupTypes returns the instance types in the manifest of a group pool.
func GroupTypes(s *AWSMachinePoolSpec) []TypeField {
	var overrides []Override
	if s.MixedInstancesPolicy != nil {
		overrides = s.MixedInstancesPolicy.Overrides
	}
	out := templateType(&s.AWSLaunchTemplate, len(overrides) > 0)
	for i, v := range overrides {
		out = append(out, TypeField{At: path("spec", "mixedInstancesPolicy", "overrides", intent.Index(i), "instanceType"), Name: v.InstanceType})
	}
	return out
}

// NodegroupTypes returns the instance types in the manifest of a managed pool.
func NodegroupTypes(s *AWSManagedMachinePoolSpec) []TypeField {
	var out []TypeField
	if t := intent.Value(s.InstanceType); t != "" {
		out = append(out, TypeField{At: path("spec", "instanceType"), Name: t})
	}
	if s.AWSLaunchTemplate != nil {
		out = append(out, templateType(s.AWSLaunchTemplate, false)...)
	}
	return out
}

func templateType(lt *LaunchTemplate, replaced bool) []TypeField {
	if lt.InstanceType == "" {
		return nil
	}
	return []TypeField{{path("spec", "awsLaunchTemplate", "instanceType"), lt.InstanceType, replaced}}
}

// Launched returns the types that are not replaced by overrides.
func Launched(types []TypeField) []TypeField {
	return slices.DeleteFunc(slices.Clone(types), func(t TypeField) bool { return t.replaced || t.Name == "" })
}

func (n *NodegroupOptions) Types() []TypeField {
	out := make([]TypeField, 0, len(n.InstanceTypes))
	for i, t := range n.InstanceTypes {
		out = append(out, TypeField{At: OptionsNodegroup.Join("instanceTypes", intent.Index(i)), Name: t})
	}
	return out
}
