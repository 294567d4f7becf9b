package manifest

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// What CAPA looks up where nothing is written.
const (
	defaultImageFormat = "capa-ami-{{.BaseOS}}-?{{.K8sVersion}}-*"
	defaultImageOrg    = "819546954734"
	defaultImageBaseOS = "ubuntu-24.04"
)

// ssmPrefix begins an ami.id that names an SSM parameter, with or without a
// version or label behind it (ImageId of RequestLaunchTemplateData in EC2's API).
// weir resolves it, so that a rollout is planned and every version has one image.
const ssmPrefix = "resolve:ssm:"

// imageVariable is what an imageLookupFormat may hold between double braces.
// CAPA takes any Go template; these two variables are all that one can name.
var imageVariable = regexp.MustCompile(`\{\{-?\s*\.(\w+)\s*-?\}\}`)

func checkImageFormat(r reporter, p intent.Path, format string) {
	for _, m := range imageVariable.FindAllStringSubmatch(format, -1) {
		if m[1] != "BaseOS" && m[1] != "K8sVersion" {
			r.error(p, "bad-template", fmt.Sprintf("%s names .%s", p, m[1]), "it may name .BaseOS and .K8sVersion")
		}
	}
	if rest := imageVariable.ReplaceAllString(format, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
		r.error(p, "bad-template", p.String()+" is not understood", "it may hold {{.BaseOS}} and {{.K8sVersion}}")
	}
}

func expandImageFormat(format, baseOS string, v kubernetes) string {
	return imageVariable.ReplaceAllStringFunc(format, func(s string) string {
		if imageVariable.FindStringSubmatch(s)[1] == "BaseOS" {
			return baseOS
		}
		return strings.TrimPrefix(v.text, "v")
	})
}

// imageQuestion is what is needed to ask for an image.
type imageQuestion struct {
	template     *LaunchTemplate
	cluster      *cluster
	version      kubernetes
	instanceType string
	// pool and infrastructure report about MachinePool and pool object.
	pool, infrastructure reporter
}

// lookup returns the lookup by which CAPA finds a pool's image. ok is false if
// something is missing, which is then reported.
func (q imageQuestion) lookup() (l intent.Lookup, ok bool) {
	lt, p := q.template, path("spec", "awsLaunchTemplate")
	if lt.AMI.ID != nil {
		if parameter, ok := strings.CutPrefix(*lt.AMI.ID, ssmPrefix); ok {
			return intent.Lookup{Kind: intent.ImageByParameter, Name: parameter, InstanceType: q.instanceType}, true
		}
		return intent.Lookup{Kind: intent.ImageByID, Name: *lt.AMI.ID, InstanceType: q.instanceType}, true
	}
	if !q.version.known() {
		q.pool.error(path("spec", "template", "spec", "version"), "image-unknown", "the pool's image cannot be told: it needs ami.id or a Kubernetes version",
			"write spec.awsLaunchTemplate.ami.id in "+q.infrastructure.ref.String()+", or spec.template.spec.version here")
		return intent.Lookup{}, false
	}
	settings := q.cluster.lookup
	override(&settings.ImageLookupFormat, lt.ImageLookupFormat)
	override(&settings.ImageLookupOrg, lt.ImageLookupOrg)
	override(&settings.ImageLookupBaseOS, lt.ImageLookupBaseOS)
	if q.cluster.eks && settings == (ImageLookup{}) {
		kind := "AmazonLinux"
		if lt.AMI.EKSLookupType != nil {
			kind = *lt.AMI.EKSLookupType
		}
		if (kind == "AmazonLinux" || kind == "AmazonLinuxGPU") && q.version.lacksAL2() {
			q.infrastructure.error(p.Join("ami", "eksLookupType"), "no-al2-image", "EKS has no Amazon Linux 2 image for Kubernetes "+q.version.short(),
				"write spec.awsLaunchTemplate.ami.eksLookupType: AmazonLinux2023, and bootstrap the nodes with a NodeadmConfig")
			return intent.Lookup{}, false
		}
		return intent.Lookup{Kind: intent.ImageForEKS, Name: kind, Version: q.version.short(), InstanceType: q.instanceType}, true
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
