package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// otherKeys are keys by which other tools say what weir reads from keys of its own;
// on nodes EKS and Karpenter say so what became of it.
func otherKeys() map[string]string {
	return map[string]string{
		"launchTemplateName": kinds.OwnName, "launchTemplateId": kinds.OwnID, "launchTemplateVersion": kinds.OwnVersion, "capacityType": kinds.OwnCapacity,
		"sourceLaunchTemplateId": kinds.OwnID, "sourceLaunchTemplateVersion": kinds.OwnVersion,
	}
}

// noteOtherKeys says of such keys that they have no effect, and what to write.
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
