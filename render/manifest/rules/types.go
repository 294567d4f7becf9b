package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/nearest"
)

// checkKnownTypes warns of instance types that are not in the AWS SDK's list, which comes from EC2's API
// model. AWS adds types, so it is no error.
func checkKnownTypes(r kinds.Reporter, types []kinds.TypeField) {
	for _, t := range types {
		if t.Name != "" && !instancetypes.Known(t.Name) {
			r.Warn(t.At, "unknown-instance-type", fmt.Sprintf("%s is %q, which is not an instance type that weir knows", t.At, t.Name), likelyTypes(t.Name))
		}
	}
}

// likelyTypes returns the likely meaning of an unknown instance type.
func likelyTypes(name string) string {
	const newer = "; AWS may also have added it after this weir was released"
	family, _, dotted := strings.Cut(name, ".")
	if !dotted {
		return `an instance type is a family and a size, such as "m5.large"`
	}
	said := ""
	if near := nearTypes(strings.ToLower(name)); len(near) > 0 {
		said = "did you mean " + kinds.OneOf(near) + "? "
	}
	if sizes := instancetypes.Sizes(family); sizes != nil {
		return said + family + " comes as " + strings.Join(sizes, ", ") + newer
	}
	return said + "see the instance types of the region" + newer
}

// nearTypes returns up to three instance types that differ from a name by at most one character. Types with
// the same prefix come first.
func nearTypes(name string) []string {
	type candidate struct {
		name             string
		distance, shared int
	}
	var all []candidate
	for _, f := range instancetypes.Families() {
		for _, size := range instancetypes.Sizes(f) {
			c := candidate{name: f + "." + size}
			if c.distance = nearest.Distance(name, c.name, 2); c.distance > 1 {
				continue
			}
			for c.shared < min(len(name), len(c.name)) && name[c.shared] == c.name[c.shared] {
				c.shared++
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.shared, a.shared), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range all[:min(3, len(all))] {
		out = append(out, c.name)
	}
	return out
}

// checkOneArchitecture reports a pool that would launch instances of several architectures. A launch template
// has one image, and an image has one architecture (ImageId of RequestLaunchTemplateData and Architecture of
// Image in EC2's API). CAPA's overrides cannot name another template.
func checkOneArchitecture(r kinds.Reporter, types []kinds.TypeField) {
	first := slices.IndexFunc(types, func(t kinds.TypeField) bool { return instancetypes.Architecture(t.Name) != "" })
	if first < 0 {
		return
	}
	a := types[first]
	want := instancetypes.Architecture(a.Name)
	for _, t := range types[first+1:] {
		if got := instancetypes.Architecture(t.Name); got != "" && got != want {
			r.To.Add(kinds.Fault{Code: "mixed-architectures", Summary: fmt.Sprintf("%s %s is %s, but %s is %s: a pool has one image, which has one architecture", t.At, t.Name, got, a.Name, want),
				Detail: "make a pool for each architecture", Ref: r.Ref, Path: t.At,
				Related: []kinds.RelatedField{{Ref: r.Ref, Path: a.At, Message: a.Name + " is " + want}}})
		}
	}
}

// CheckAMIType reports instance types that cannot run the images of spec.amiType. EKS answers such a request
// with "is not a valid instance type for requested amiType" (CreateNodegroup). The rule does not apply if the
// launch template has an image, because weir then sends no amiType.
func CheckAMIType(r kinds.Reporter, pool intent.ObjectRef, s *kinds.AWSManagedMachinePoolSpec, types []kinds.TypeField, written bool) {
	want := s.AMIType.Architecture()
	if want == "" || kinds.ManagedImage(s) {
		return
	}
	for _, t := range types {
		got := instancetypes.Architecture(t.Name)
		if got == "" || got == want {
			continue
		}
		what := "spec.amiType is " + string(s.AMIType)
		if !written {
			what = "spec.amiType is not written, which means " + string(s.AMIType)
		}
		f := kinds.Fault{Code: "architecture-mismatch", Summary: fmt.Sprintf("%s %s is %s, but %s, whose images are %s", t.At, t.Name, got, what, want),
			Detail: fmt.Sprintf("write an amiType for %s, or another instance type", got), Ref: r.Ref, Path: t.At}
		if got == instancetypes.ARM {
			f.Detail = "write spec.amiType: AL2023_ARM_64_STANDARD, or another instance type"
		}
		if written {
			f.Related = []kinds.RelatedField{{Ref: pool, Path: path("spec", "amiType"), Message: "the kind of image"}}
		}
		r.To.Add(f)
	}
}

// gPUImages are the lookup types with images only for x86_64: the SSM parameters in "Retrieve recommended
// Amazon Linux AMI IDs" of EKS's user guide.
var gPUImages = []string{"AmazonLinuxGPU", "AmazonLinux2023GPU"}

// architectureWord finds an architecture in the name of an image.
var architectureWord = lazyregexp.New(`(?i)(arm64|aarch64|x86[_-]64|amd64)`)

// checkImageArchitecture reports instance types that cannot run the looked-up image. The lookup requests the
// architecture of the instance type in the launch template, or of the first override. The planner checks an
// image that is given by id.
func (d *Derived) checkImageArchitecture(lt *kinds.LaunchTemplate, types []kinds.TypeField) {
	image := d.LaunchTemplate.Image
	if image.Kind != intent.ImageForEKS && image.Kind != intent.ImageByName {
		return
	}
	asked := instancetypes.Architecture(image.InstanceType)
	if image.Kind == intent.ImageForEKS && slices.Contains(gPUImages, image.Name) {
		asked = instancetypes.X86
	}
	for _, t := range kinds.Launched(types) {
		switch got := instancetypes.Architecture(t.Name); {
		case got == "":
		case got == instancetypes.X86Apple || got == instancetypes.ARMApple:
			d.AtPool.Error(t.At, "architecture-mismatch", fmt.Sprintf("%s %s runs macOS, for which no image is looked up", t.At, t.Name), "name the image in spec.awsLaunchTemplate.ami.id")
		case image.Kind == intent.ImageForEKS && slices.Contains(gPUImages, image.Name) && got != asked:
			at := path("spec", "awsLaunchTemplate", "ami", "eksLookupType")
			d.Faults.Add(kinds.Fault{Code: "architecture-mismatch", Summary: fmt.Sprintf("%s %s is %s, but the images of %s are %s only", t.At, t.Name, got, image.Name, asked),
				Detail: "name the image in spec.awsLaunchTemplate.ami.id, or write another instance type", Ref: d.Infrastructure, Path: t.At,
				Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: at, Message: "the kind of image"}}})
		case asked != "" && got != asked:
			at := path("spec", "awsLaunchTemplate", "instanceType")
			d.Faults.Add(kinds.Fault{Code: "architecture-mismatch", Summary: fmt.Sprintf("%s %s is %s, so weir looks up an image for that, but machines launch as %s, which is %s", at, lt.InstanceType, asked, t.Name, got),
				Detail: "write one of the overrides' instance types here", Ref: d.Infrastructure, Path: at,
				Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: t.At, Message: t.Name + " is " + got}}})
			return // only once, because the finding is the same for all other overrides
		default:
			d.checkImageName(lt, t, got)
		}
	}
}

// checkImageName warns if the name in a lookup mentions another architecture than the requested one. The
// lookup then finds nothing, unless the name is misleading.
func (d *Derived) checkImageName(lt *kinds.LaunchTemplate, t kinds.TypeField, got string) {
	for field, value := range map[string]string{"imageLookupFormat": lt.ImageLookupFormat, "imageLookupBaseOS": lt.ImageLookupBaseOS} {
		word := architectureWord.FindString(value)
		named := instancetypes.X86
		if w := strings.ToLower(word); w == "arm64" || w == "aarch64" {
			named = instancetypes.ARM
		}
		at := path("spec", "awsLaunchTemplate", field)
		already := slices.ContainsFunc(d.Faults.List, func(f kinds.Fault) bool { return f.Code == "architecture-mismatch" && slices.Equal(f.Path, at) })
		if word != "" && named != got && !already {
			d.Faults.Add(kinds.Fault{Severity: diag.Warning, Code: "architecture-mismatch", Summary: fmt.Sprintf("%s speaks of %s, but %s is %s", at, word, t.Name, got),
				Detail: "weir looks up an image for " + got, Ref: d.Infrastructure, Path: at,
				Related: []kinds.RelatedField{{Ref: d.Infrastructure, Path: t.At, Message: t.Name + " is " + got}}})
		}
	}
}
