package derive

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// CAPA's default values.
const (
	defaultImageFormat = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*"
	defaultImageOrg    = "819546954734"
	defaultImageBaseOS = "ubuntu-24.04"
)

func expandImageFormat(format, baseOS string, v kinds.Kubernetes) string {
	return kinds.ImageVariable.ReplaceAllStringFunc(format, func(s string) string {
		if kinds.ImageVariable.FindStringSubmatch(s)[1] == "BaseOS" {
			return baseOS
		}
		return strings.TrimPrefix(v.Text, "v")
	})
}

// imageQuestion has the inputs of an image lookup.
type imageQuestion struct {
	template     *kinds.LaunchTemplate
	cluster      *cluster
	version      kinds.Kubernetes
	instanceType string
	// pool and infrastructure report about the MachinePool and the pool object.
	pool, infrastructure kinds.Reporter
}

// image sets the lookup of the pool's image. If an image is pinned, it also sets the lookup of the newest
// image of its family.
func (d *draft) image(q imageQuestion) {
	if l, ok := q.lookup(); ok {
		d.LaunchTemplate.Image = l
	}
	if d.LaunchConfig != nil {
		d.Remembered = d.LaunchConfig.Remembered
	}
	if d.LaunchTemplate.Image.Kind != intent.ImageByID || d.Remembered == "" {
		return
	}
	unpinned := *q.template
	if unpinned.AMI.ID = nil; d.Remembered != intent.FamilyLookup {
		unpinned.AMI.ID = &d.Remembered
	}
	// This lookup only serves proposals, so its faults are not reported.
	q.template, q.pool.To, q.infrastructure.To = &unpinned, &kinds.Faults{}, &kinds.Faults{}
	if l, ok := q.lookup(); ok {
		d.Family = l
	}
}

// lookup returns the lookup with which CAPA finds a pool's image. ok is false if a value is missing. The
// fault is then reported.
func (q imageQuestion) lookup() (l intent.Lookup, ok bool) {
	lt, p := q.template, path("spec", "awsLaunchTemplate")
	if lt.AMI.ID != nil {
		if parameter, ok := strings.CutPrefix(*lt.AMI.ID, kinds.SSMPrefix); ok {
			return intent.Lookup{Kind: intent.ImageByParameter, Name: parameter, InstanceType: q.instanceType}, true
		}
		return intent.Lookup{Kind: intent.ImageByID, Name: *lt.AMI.ID, InstanceType: q.instanceType}, true
	}
	if !q.version.Known() {
		q.pool.Error(path("spec", "template", "spec", "version"), "image-unknown", "weir cannot determine the pool's image: it needs ami.id or a Kubernetes version",
			"write spec.awsLaunchTemplate.ami.id in "+q.infrastructure.Ref.String()+", or spec.template.spec.version here")
		return intent.Lookup{}, false
	}
	settings := q.cluster.lookup
	override(&settings.ImageLookupFormat, lt.ImageLookupFormat)
	override(&settings.ImageLookupOrg, lt.ImageLookupOrg)
	override(&settings.ImageLookupBaseOS, lt.ImageLookupBaseOS)
	if q.cluster.eks && settings == (kinds.ImageLookup{}) {
		kind := "AmazonLinux"
		if lt.AMI.EKSLookupType != nil {
			kind = *lt.AMI.EKSLookupType
		}
		if (kind == "AmazonLinux" || kind == "AmazonLinuxGPU") && q.version.DropsAL2() {
			q.infrastructure.Error(p.Join("ami", "eksLookupType"), "no-al2-image", "EKS has no Amazon Linux 2 image for Kubernetes "+q.version.Short(),
				"write spec.awsLaunchTemplate.ami.eksLookupType: AmazonLinux2023, and bootstrap the nodes with a NodeadmConfig")
			return intent.Lookup{}, false
		}
		return intent.Lookup{Kind: intent.ImageForEKS, Name: kind, Version: q.version.Short(), InstanceType: q.instanceType}, true
	}
	byDefault(&settings.ImageLookupFormat, defaultImageFormat)
	byDefault(&settings.ImageLookupOrg, defaultImageOrg)
	byDefault(&settings.ImageLookupBaseOS, defaultImageBaseOS)
	name := expandImageFormat(settings.ImageLookupFormat, settings.ImageLookupBaseOS, q.version)
	return intent.Lookup{Kind: intent.ImageByName, Name: name, Owner: settings.ImageLookupOrg, InstanceType: q.instanceType}, true
}

func override(s *string, by string) {
	if by != "" {
		*s = by
	}
}

func byDefault(s *string, value string) {
	if *s == "" {
		*s = value
	}
}
