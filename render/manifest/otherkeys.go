package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// otherKeys are keys by which other tools say what weir reads from keys of its own;
// on nodes EKS and Karpenter say so what became of it.
func otherKeys() map[string]string {
	return map[string]string{
		"launchTemplateName": ownName, "launchTemplateId": ownID, "launchTemplateVersion": ownVersion, "capacityType": ownCapacity,
		"sourceLaunchTemplateId": ownID, "sourceLaunchTemplateVersion": ownVersion,
	}
}

// noteOtherKeys says of such keys that they have no effect, and what to write.
func noteOtherKeys(r reporter, m Meta) {
	own := readOwnKeys(reporter{to: &faults{}}, m)
	for _, place := range []struct {
		where  string
		values map[string]string
	}{{"annotations", m.Annotations}, {"labels", m.Labels}} {
		for _, key := range slices.Sorted(maps.Keys(place.values)) {
			prefix, name, _ := strings.Cut(key, "/")
			instead := otherKeys()[name]
			if _, said := own[instead]; instead == "" || said || prefix != "kubernetes.amazonaws.com" && prefix != "eks.amazonaws.com" {
				continue
			}
			r.to.add(Fault{Severity: diag.Warning, Code: "key-of-another-tool", Summary: fmt.Sprintf("%s is not read", key),
				Detail: fmt.Sprintf("write %s%s, or remove it", ownTemplatePrefix, instead), Ref: r.ref, Path: path("metadata", place.where, key), Key: true})
		}
	}
}
