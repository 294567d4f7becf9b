package field

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// beside lists members without rows that the pool's own object sets. Their fields in the pool do not map to
// exactly one member. Keys are AWS's names in lower camel case.
var beside = map[Kind]map[string]string{
	Template: {
		"blockDeviceMappings": "awsLaunchTemplate.rootVolume", "instanceMarketOptions": "awsLaunchTemplate.spotMarketOptions",
		"securityGroups": "awsLaunchTemplate.additionalSecurityGroups",
	},
	Group: {
		"availabilityZones": "availabilityZones", "launchTemplate": "awsLaunchTemplate", "lifecycleHookSpecificationList": "lifecycleHooks",
		"lifecycleHooks": "lifecycleHooks", "maxSize": "maxSize", "minSize": "minSize", "suspendProcesses": "suspendProcesses", "tags": "additionalTags",
		"vpcZoneIdentifier": "subnets",
	},
	Nodegroup: {
		"launchTemplate": "awsLaunchTemplate", "nodeRole": "roleName", "nodegroupName": "eksNodegroupName", "scalingConfig": "scaling", "subnets": "subnetIDs",
		"tags": "additionalTags",
	},
}

// InPool returns the field below the pool's spec that sets an AWS member, whose path is spelled as in
// PoolOptions. ok is false if the pool has no such field.
func InPool(of Kind, member string) (field intent.Path, ok bool) {
	if f := beside[of][member]; f != "" {
		return elements(f), true
	}
	for _, r := range Rows(of) {
		set := r.PoolFields()
		rest, inside := strings.CutPrefix(r.OptionsField(), section(of)+"."+member)
		if len(set) == 0 || !inside || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		path := elements(set[0])
		if !ok {
			field, ok = path, true
			continue
		}
		n := 0
		for n < min(len(field), len(path)) && field[n] == path[n] {
			n++
		}
		field = field[:n]
	}
	for len(field) > 0 && field[len(field)-1] == "[]" {
		field = field[:len(field)-1]
	}
	return field, len(field) > 0
}
