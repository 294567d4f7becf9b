package kinds

import (
	"fmt"
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

// annotation finds a key in the first object that has it.
func annotation(objects []Annotated, key string) (value string, in Annotated, ok bool) {
	for _, o := range objects {
		if v, ok := o.Meta.Annotations[key]; ok {
			return v, o, true
		}
	}
	return "", Annotated{}, false
}

// ReadAnnotations reads weir's annotations of a pool, from its infrastructure
// object first and then from its MachinePool.
func ReadAnnotations(objects []Annotated, p *intent.Pool) {
	if v, in, ok := annotation(objects, AnnotationPrune); ok {
		p.PruneDisabled = true
		if v != "disabled" {
			in.Error(AnnotationPath(AnnotationPrune), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationPrune, v), `it must be "disabled"`)
		}
	}
	if v, in, ok := annotation(objects, AnnotationDelete); ok {
		p.Drain = v == "drain"
		if v != "drain" && v != "force" {
			in.Error(AnnotationPath(AnnotationDelete), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationDelete, v),
				`it must be "drain", which ends the machines one by one before the group is deleted, or "force", which deletes the group with its machines`)
		}
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
	if v, in, ok := annotation(objects, AnnotationAdopt); ok {
		p.Adopt = v == "true"
		if v != "true" && v != "false" {
			in.Error(AnnotationPath(AnnotationAdopt), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationAdopt, v), `it must be "true" or "false", in quotes`)
		}
	}
	if v, in, ok := annotation(objects, AnnotationReplace); ok {
		p.AllowReplace = v == "allowed"
		if v != "allowed" {
			in.Error(AnnotationPath(AnnotationReplace), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationReplace, v), `it must be "allowed"`)
		}
	}
	if v, in, ok := annotation(objects, AnnotationImageFamily); ok {
		p.Remembered = v
		if name, parameter := strings.CutPrefix(v, SSMPrefix); v != intent.FamilyLookup && (!parameter || name == "") {
			p.Remembered = ""
			in.Error(AnnotationPath(AnnotationImageFamily), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationImageFamily, v),
				fmt.Sprintf("it must be %q, for what the manifests look up where no image is pinned, or %sNAME, for the image that a parameter of AWS Systems Manager holds", intent.FamilyLookup, SSMPrefix))
		}
	}
	if v, in, ok := annotation(objects, AnnotationAMIPolicy); ok {
		p.FollowImages = v == "follow"
		if v != "follow" && v != "keep" {
			in.Error(AnnotationPath(AnnotationAMIPolicy), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", AnnotationAMIPolicy, v),
				`it must be "follow", which rolls a newly published image out, or "keep", which waits for the manifests to change`)
		}
	}
}

// maxVersions is the greatest number of versions to keep: EC2's quota of
// versions for a launch template is 10,000, with the newest and the next.
const maxVersions = 9998
