package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// otherKeys maps keys of other tools to weir's keys with the same meaning. EKS and Karpenter put such keys on
// nodes.
func otherKeys() map[string]string {
	return map[string]string{
		"launchTemplateName": kinds.OwnName, "launchTemplateId": kinds.OwnID, "launchTemplateVersion": kinds.OwnVersion, "capacityType": kinds.OwnCapacity,
		"sourceLaunchTemplateId": kinds.OwnID, "sourceLaunchTemplateVersion": kinds.OwnVersion,
	}
}

// noteOtherKeys reports that such keys have no effect, and which keys to use instead.
func noteOtherKeys(r kinds.Reporter, m kinds.Meta) {
	own := kinds.ReadOwnKeys(kinds.Reporter{To: &kinds.Faults{}}, m)
	for _, part := range []struct {
		where  string
		values map[string]string
	}{{"annotations", m.Annotations}, {"labels", m.Labels}} {
		for _, key := range slices.Sorted(maps.Keys(part.values)) {
			prefix, name, _ := strings.Cut(key, "/")
			instead := otherKeys()[name]
			if _, said := own[instead]; instead == "" || said || prefix != "kubernetes.amazonaws.com" && prefix != "eks.amazonaws.com" {
				continue
			}
			r.To.Add(kinds.Fault{Severity: diag.Warning, Code: "key-of-another-tool", Summary: fmt.Sprintf("%s is not read", key),
				Detail: fmt.Sprintf("write %s%s, or remove it", kinds.OwnTemplatePrefix, instead), Ref: r.Ref, Path: path("metadata", part.where, key), Key: true})
		}
	}
}
