package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
)

// Annotations of Cluster API and of weir.
const (
	annotationPaused     = "cluster.x-k8s.io/paused"
	annotationReplicasBy = "cluster.x-k8s.io/replicas-managed-by"
	annotationMinSize    = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	annotationMaxSize    = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"

	annotationPrune        = groupWeir + "/prune"
	annotationDelete       = groupWeir + "/delete"
	annotationKeepVersions = groupWeir + "/keep-versions"
	annotationAMIPolicy    = groupWeir + "/ami-policy"
	annotationAdopt        = groupWeir + "/adopt"
	annotationReplace      = groupWeir + "/replace"
	annotationArchitecture = groupWeir + "/architecture"
)

// annotated is an object with its annotations and labels.
type annotated struct {
	reporter
	meta Meta
}

func annotationPath(key string) intent.Path { return path("metadata", "annotations", key) }

// annotation finds a key in the first object that has it.
func annotation(objects []annotated, key string) (value string, in annotated, ok bool) {
	for _, o := range objects {
		if v, ok := o.meta.Annotations[key]; ok {
			return v, o, true
		}
	}
	return "", annotated{}, false
}

// readAnnotations reads weir's annotations of a pool, from its infrastructure
// object first and then from its MachinePool.
func readAnnotations(objects []annotated, p *intent.Pool) {
	if v, in, ok := annotation(objects, annotationPrune); ok {
		p.PruneDisabled = true
		if v != "disabled" {
			in.error(annotationPath(annotationPrune), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", annotationPrune, v), `it must be "disabled"`)
		}
	}
	if v, in, ok := annotation(objects, annotationDelete); ok {
		p.Drain = v == "drain"
		if v != "drain" && v != "force" {
			in.error(annotationPath(annotationDelete), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", annotationDelete, v),
				`it must be "drain", which ends the machines one by one before the group is deleted, or "force", which deletes the group with its machines`)
		}
	}
	if v, in, ok := annotation(objects, annotationKeepVersions); ok {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 1 || n > maxVersions {
			in.error(annotationPath(annotationKeepVersions), "out-of-range", fmt.Sprintf("annotation %s cannot be %q", annotationKeepVersions, v),
				fmt.Sprintf("it is how many earlier versions of the launch template are kept: a number from 1 to %d, in quotes", maxVersions))
		} else {
			p.KeepVersions = int32(n)
		}
	}
	if v, in, ok := annotation(objects, annotationAdopt); ok {
		p.Adopt = v == "true"
		if v != "true" && v != "false" {
			in.error(annotationPath(annotationAdopt), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", annotationAdopt, v), `it must be "true" or "false", in quotes`)
		}
	}
	if v, in, ok := annotation(objects, annotationReplace); ok {
		p.AllowReplace = v == "allowed"
		switch {
		case v != "allowed":
			in.error(annotationPath(annotationReplace), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", annotationReplace, v), `it must be "allowed"`)
		case p.Kind == intent.GroupPool:
			in.info(annotationPath(annotationReplace), "not-carried", "annotation "+annotationReplace+" has no effect on an AWSMachinePool", "an Auto Scaling group can be changed in place")
			p.AllowReplace = false
		}
	}
	if v, in, ok := annotation(objects, annotationAMIPolicy); ok {
		p.FollowImages = v == "follow"
		if v != "follow" && v != "keep" {
			in.error(annotationPath(annotationAMIPolicy), "bad-enum", fmt.Sprintf("annotation %s cannot be %q", annotationAMIPolicy, v),
				`it must be "follow", which rolls a newly published image out, or "keep", which waits for the manifests to change`)
		}
	}
}

// noteDelete says that a managed pool is always deleted by EKS's own rules: it
// drains the nodes itself.
func (d *draft) noteDelete() {
	if d.Drain {
		d.infra.info(annotationPath(annotationDelete), "not-carried", "annotation "+annotationDelete+" has no effect on a managed pool", "EKS drains the nodes of a nodegroup before it deletes them")
		d.Drain = false
	}
}

// maxVersions is the greatest number of versions to keep: EC2's quota of
// versions for a launch template is 10,000, with the newest and the next.
const maxVersions = 9998

// checkAnnotations reports keys of weir's that are misspelt, not carried by this
// version, or on an object where they are not read.
func checkAnnotations(a annotated, pool bool) {
	known := []string{annotationPrune, annotationDelete, annotationKeepVersions, annotationAMIPolicy, annotationAdopt, annotationReplace}
	coming := []string{annotationArchitecture}
	for _, key := range slices.Sorted(maps.Keys(a.meta.Annotations)) {
		if !strings.HasPrefix(key, groupWeir+"/") {
			continue
		}
		at := annotationPath(key)
		switch {
		case key == annotationArchitecture && bringsTemplate(a.meta) && pool && a.ref.Kind != "MachinePool":
			// one excludes the other, which is said there
		case slices.Contains(coming, key):
			a.unsupported(at, "annotation "+key, "")
		case !slices.Contains(known, key):
			detail := "weir reads " + strings.Join(known, ", ")
			if near := nearest.Word(key, known); near != "" {
				detail = fmt.Sprintf("did you mean %q?", near)
			}
			a.to.add(Fault{Code: "unknown-annotation", Summary: "unknown annotation " + key, Detail: detail, Ref: a.ref, Path: at, Key: true})
		case !pool:
			a.warn(at, "annotation-not-read", fmt.Sprintf("annotation %s is not read on a %s", key, a.ref.Kind), "write it on the infrastructure pool or the MachinePool")
		}
	}
}

// replicas returns a MachinePool's size by Cluster API's rule: what is written,
// else the autoscaler's lower bound if both of its bounds are annotated, else 1.
func replicas(o *object[MachinePoolSpec], r reporter) intent.Number {
	if o.Spec.Replicas != nil {
		return intent.Number{Value: *o.Spec.Replicas, Written: true}
	}
	low, hasLow := o.Metadata.Annotations[annotationMinSize]
	_, hasHigh := o.Metadata.Annotations[annotationMaxSize]
	if !hasLow || !hasHigh {
		return intent.Number{Value: 1}
	}
	bounds := [2]int{}
	for i, key := range []string{annotationMinSize, annotationMaxSize} {
		n, err := strconv.ParseInt(o.Metadata.Annotations[key], 10, 32)
		if err != nil || n < 0 {
			r.error(annotationPath(key), "bad-value", fmt.Sprintf("annotation %s is no size: %q", key, o.Metadata.Annotations[key]), "")
			return intent.Number{Value: 1}
		}
		bounds[i] = int(n)
	}
	if bounds[0] > bounds[1] {
		r.error(annotationPath(annotationMinSize), "out-of-range", fmt.Sprintf("annotation %s is %s, above the one for the maximum", annotationMinSize, low), "")
	}
	return intent.Number{Value: int32(bounds[0])}
}
