package rules

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// idField is a field with the id of an AWS resource. [] stands for every item of a list and {} for every
// value of a mapping.
type idField struct{ field, prefix string }

// idsOfTemplate lists the ids in awsLaunchTemplate. The image may also be given by a parameter.
var idsOfTemplate = []idField{
	{"additionalSecurityGroups.[].id", "sg-"},
	{"ami.id", "ami-"},
	{"capacityReservationId", "cr-"},
}

// idsOfNetwork lists the ids in a cluster's spec.network that weir uses. The id of a subnet may also be a
// name, for a subnet that CAPA creates.
var idsOfNetwork = []idField{
	{"spec.network.vpc.id", "vpc-"},
	{"spec.network.subnets.[].resourceID", "subnet-"},
	{"spec.network.securityGroupOverrides.{}", "sg-"},
}

// idFields lists the fields with ids, by kind. Fields of PoolOptions for a member of a launch template are in
// the table of package field.
var idFields = map[string][]idField{
	"AWSMachinePool": append([]idField{{"spec.subnets.[].id", "subnet-"}}, below("spec.awsLaunchTemplate.", idsOfTemplate)...),
	"AWSManagedMachinePool": append([]idField{{"spec.subnetIDs.[]", "subnet-"}, {"spec.remoteAccess.sourceSecurityGroups.[]", "sg-"}},
		below("spec.awsLaunchTemplate.", idsOfTemplate)...),
	kinds.KindLaunchConfig:         below("spec.", idsOfTemplate),
	kinds.KindLaunchConfigTemplate: below("spec.template.spec.", idsOfTemplate),
	"PoolOptions": below("spec.autoScalingGroup.", []idField{
		{"capacityReservationSpecification.capacityReservationTarget.capacityReservationIds.[]", "cr-"},
		{"mixedInstancesPolicy.overrides.[].imageId", "ami-"},
		{"mixedInstancesPolicy.overrides.[].launchTemplateSpecification.launchTemplateId", "lt-"},
	}),
	"AWSCluster":             idsOfNetwork,
	"AWSManagedControlPlane": idsOfNetwork,
}

func below(prefix string, fields []idField) []idField {
	out := make([]idField, len(fields))
	for i, f := range fields {
		out[i] = idField{prefix + f.field, f.prefix}
	}
	return out
}

// checkIDs reports malformed ids in an object.
func checkIDs(r kinds.Reporter, o kinds.Object) {
	for _, f := range idFields[o.Ref.Kind] {
		eachText(o.Node, nil, strings.Split(f.field, "."), func(at intent.Path, id string) {
			if parameter := strings.HasSuffix(f.field, "ami.id") && strings.HasPrefix(id, kinds.SSMPrefix); id != "" && !parameter {
				kinds.CheckID(r, at, id, f.prefix)
			}
		})
	}
}

// eachText calls found for every string at a field below a node. Decoding already reported values of other
// types.
func eachText(n *yaml.Node, at intent.Path, field []string, found func(intent.Path, string)) {
	n = strict.Resolve(n)
	if n == nil {
		return
	}
	if len(field) == 0 {
		if text, ok := strict.Text(n); ok {
			found(at, text)
		}
		return
	}
	switch {
	case field[0] == "[]" && n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			eachText(item, at.Join(intent.Index(i)), field[1:], found)
		}
	case field[0] == "{}" && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			eachText(n.Content[i+1], at.Join(n.Content[i].Value), field[1:], found)
		}
	default:
		eachText(strict.At(n, field[0]), at.Join(field[0]), field[1:], found)
	}
}
