package derive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
	"github.com/weir-gitops/weir/render/nearest"
)

// checkClusterKnown reports a pool whose Cluster is not in the render although
// the render has others, so that its name is likely misspelt, and one whose
// Cluster the build gave another name. A render without any Cluster is fine:
// clusters may be declared elsewhere.
func (b *Builder) checkClusterKnown(mp *kinds.Decoded[kinds.MachinePoolSpec]) {
	kind := intent.PoolKind(mp.Spec.Template.Spec.InfrastructureRef.Kind)
	key := intent.Key{Namespace: mp.Key().Namespace, Name: mp.Spec.ClusterName}
	if _, known := b.clusters[key]; known || key.Name == "" || kind != intent.GroupPool && kind != intent.NodegroupPool {
		return
	}
	r, at := mp.Reporter(b.faults), path("spec", "clusterName")
	if b.renamed != nil {
		if now, ok := b.renamed("Cluster", key.Name); ok {
			mp.Broken = true
			r.Error(at, "reference-not-found", fmt.Sprintf("Cluster %q, to which %s refers, is not in the render", key.Name, mp.Ref()),
				fmt.Sprintf("the build renamed it to %q and did not change the reference: kustomize needs a nameReference configuration for kind Cluster "+
					"with the fields spec/clusterName and spec/template/spec/clusterName of MachinePool", now))
			return
		}
	}
	if len(b.clusters) == 0 {
		return
	}
	var names []string
	for k := range b.clusters {
		if k.Namespace == key.Namespace {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	detail := "its tags, its network and whether it is paused are not known"
	if near := nearest.Word(key.Name, names); near != "" {
		detail = fmt.Sprintf("did you mean %q? %s", near, detail)
	}
	r.Warn(at, "cluster-not-in-render", fmt.Sprintf("Cluster %s is not in the render, but other clusters are", key), detail)
}

// sizeOrder sorts parts of user data, the largest first.
func sizeOrder(a, b part) int { return cmp.Or(cmp.Compare(b.size, a.size), slices.Compare(a.at, b.at)) }

// checkFilterVPC warns of subnets that are looked for in another VPC than the
// cluster's, where they cannot reach its nodes.
func (d *Derived) checkFilterVPC(p intent.Path, refs []kinds.AWSResourceReference) {
	vpc := d.Cluster.Network.VPC.ID
	if vpc == "" {
		return
	}
	for i, ref := range refs {
		for j, f := range ref.Filters {
			if f.Name == "vpc-id" && len(f.Values) > 0 && !slices.ContainsFunc(f.Values, func(v string) bool { return v == vpc || strings.ContainsAny(v, "*?") }) {
				at := p.Join(intent.Index(i), "filters", intent.Index(j), "values")
				d.AtPool.Warn(at, "another-vpc", fmt.Sprintf("%s names %s, but cluster %s is in %s", at, strings.Join(f.Values, ", "), d.ClusterKey, vpc), "")
			}
		}
	}
}

// checkImageArchitecture reports instance types that the image which is looked up
// does not run on. The lookup asks for one architecture: that of the instance
// type in the launch template, or of the first override. An image that is named
// by its id is looked at when planning.
func (d *Derived) checkImageArchitecture(lt *kinds.LaunchTemplate, types []kinds.TypeField) {
	image := d.LaunchTemplate.Image
	if image.Kind != intent.ImageForEKS && image.Kind != intent.ImageByName {
		return
	}
	asked := instancetypes.Architecture(image.InstanceType)
	if image.Kind == intent.ImageForEKS && slices.Contains(rules.GPUImages, image.Name) {
		asked = instancetypes.X86
	}
	for _, t := range kinds.Launched(types) {
		switch got := instancetypes.Architecture(t.Name); {
		case got == "":
		case got == instancetypes.X86Apple || got == instancetypes.ARMApple:
			d.AtPool.Error(t.At, "architecture-mismatch", fmt.Sprintf("%s %s runs macOS, for which no image is looked up", t.At, t.Name), "name the image in spec.awsLaunchTemplate.ami.id")
		case image.Kind == intent.ImageForEKS && slices.Contains(rules.GPUImages, image.Name) && got != asked:
			at := path("spec", "awsLaunchTemplate", "ami", "eksLookupType")
			d.Faults.Add(kinds.Fault{Code: "architecture-mismatch", Summary: fmt.Sprintf("%s %s is %s, but the images of %s are %s only", t.At, t.Name, got, image.Name, asked),
				Detail: "name the image in spec.awsLaunchTemplate.ami.id, or write another instance type", Ref: d.Infrastructure, Path: t.At,
				Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: at, Message: "the kind of image"}}})
		case asked != "" && got != asked:
			at := path("spec", "awsLaunchTemplate", "instanceType")
			d.Faults.Add(kinds.Fault{Code: "architecture-mismatch", Summary: fmt.Sprintf("%s %s is %s, so an image for that is looked up, but %s is launched, which is %s", at, lt.InstanceType, asked, t.Name, got),
				Detail: "write one of the overrides' instance types here", Ref: d.Infrastructure, Path: at,
				Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: t.At, Message: t.Name + " is " + got}}})
			return // once: each further override says the same
		default:
			d.checkImageName(lt, t, got)
		}
	}
}

// checkImageName warns of a lookup by a name that speaks of another architecture
// than the one that is asked for: it finds nothing, unless the name misleads.
func (d *Derived) checkImageName(lt *kinds.LaunchTemplate, t kinds.TypeField, got string) {
	for field, value := range map[string]string{"imageLookupFormat": lt.ImageLookupFormat, "imageLookupBaseOS": lt.ImageLookupBaseOS} {
		word := rules.ArchitectureWord.FindString(value)
		named := instancetypes.X86
		if w := strings.ToLower(word); w == "arm64" || w == "aarch64" {
			named = instancetypes.ARM
		}
		at := path("spec", "awsLaunchTemplate", field)
		already := slices.ContainsFunc(d.Faults.List, func(f kinds.Fault) bool { return f.Code == "architecture-mismatch" && slices.Equal(f.Path, at) })
		if word != "" && named != got && !already {
			d.Faults.Add(kinds.Fault{Severity: diag.Warning, Code: "architecture-mismatch", Summary: fmt.Sprintf("%s speaks of %s, but %s is %s", at, word, t.Name, got),
				Detail: "the image is looked up among those for " + got, Ref: d.Infrastructure, Path: at,
				Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: t.At, Message: t.Name + " is " + got}}})
		}
	}
}
