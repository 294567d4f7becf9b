package kinds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// Annotations of Cluster API and of weir.
const (
	AnnotationPaused     = "cluster.x-k8s.io/paused"
	AnnotationReplicasBy = "cluster.x-k8s.io/replicas-managed-by"
	AnnotationMinSize    = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	AnnotationMaxSize    = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"

	AnnotationPrune        = GroupWeir + "/prune"
	AnnotationDelete       = GroupWeir + "/delete"
	AnnotationKeepVersions = GroupWeir + "/keep-versions"
	AnnotationAMIPolicy    = GroupWeir + "/ami-policy"
	AnnotationAdopt        = GroupWeir + "/adopt"
	AnnotationReplace      = GroupWeir + "/replace"
	AnnotationArchitecture = GroupWeir + "/architecture"
	AnnotationImageFamily  = GroupWeir + "/image-family"
)

// Annotated is an object with its annotations and labels.
type Annotated struct {
	Reporter
	Meta Meta
}

func AnnotationPath(key string) intent.Path { return path("metadata", "annotations", key) }

// annotation returns the value of a key in the first object that has the key.
func annotation(objects []Annotated, key string) (value string, in Annotated, ok bool) {
	for _, o := range objects {
		if v, ok := o.Meta.Annotations[key]; ok {
			return v, o, true
		}
	}
	return "", Annotated{}, false
}

// annotatedWord returns the value of an annotation that must be one of words.
func annotatedWord(objects []Annotated, key, hint string, words ...string) (value string, ok bool) {
	v, in, ok := annotation(objects, key)
	if ok && !slices.Contains(words, v) {
		in.Error(AnnotationPath(key), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", key, v), hint)
	}
	return v, ok
}

// ReadAnnotations reads weir's annotations of a pool. It prefers the annotations of the infrastructure object
// to those of the MachinePool.
func ReadAnnotations(objects []Annotated, p *intent.Pool) {
	if _, ok := annotatedWord(objects, AnnotationPrune, `it must be "disabled"`, "disabled"); ok {
		p.PruneDisabled = true
	}
	if v, ok := annotatedWord(objects, AnnotationDelete,
		`it must be "drain", which ends the machines one by one before the group is deleted, or "force", which deletes the group with its machines`, "drain", "force"); ok {
		p.Drain = v == "drain"
	}
	if v, in, ok := annotation(objects, AnnotationKeepVersions); ok {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 1 || n > maxVersions {
			in.Error(AnnotationPath(AnnotationKeepVersions), "out-of-range", fmt.Sprintf("annotation %s cannot be %q", AnnotationKeepVersions, v),
				fmt.Sprintf("it is how many earlier versions of the launch template are kept: a number from 1 to %d, in quotes", maxVersions))
		} else {
			p.KeepVersions = int32(n)
		}
	}
	if v, ok := annotatedWord(objects, AnnotationAdopt, `it must be "true" or "false", in quotes`, "true", "false"); ok {
		p.Adopt = v == "true"
	}
	if v, ok := annotatedWord(objects, AnnotationReplace, `it must be "allowed"`, "allowed"); ok {
		p.AllowReplace = v == "allowed"
	}
	if v, in, ok := annotation(objects, AnnotationImageFamily); ok {
		p.Remembered = v
		if name, parameter := strings.CutPrefix(v, SSMPrefix); v != intent.FamilyLookup && (!parameter || name == "") {
			p.Remembered = ""
			in.Error(AnnotationPath(AnnotationImageFamily), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationImageFamily, v),
				fmt.Sprintf("it must be %q, for what the manifests look up where no image is pinned, or %sNAME, for the image that a parameter of AWS Systems Manager holds", intent.FamilyLookup, SSMPrefix))
		}
	}
	if v, ok := annotatedWord(objects, AnnotationAMIPolicy,
		`it must be "follow", which rolls a newly published image out, or "keep", which waits for the manifests to change`, "follow", "keep"); ok {
		p.FollowImages = v == "follow"
	}
}

// maxVersions is the maximum number of versions to keep. EC2's quota is 10,000 versions of a launch template.
// The newest version and the next one also count.
const maxVersions = 9998
