package field

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// beside lists members that the pool's own object sets and that are no rows, because its field does
// not map to one of them alone: by AWS's name as a manifest would spell it.
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

// InPool is the field below spec of the pool's object that sets a member of AWS's, whose
// path is spelt as in PoolOptions; ok is false where the pool has no such field.
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
