package eks

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type updateVersionInput struct {
	Version  string    `json:"version"`
	Release  string    `json:"releaseVersion"`
	Template *Template `json:"launchTemplate"`
	Force    bool      `json:"force"`
	Token    string    `json:"clientRequestToken"`
}

func updateNodegroupVersion(rq *request, in updateVersionInput) (any, error) {
	r := rq.Region
	return update(rq, in.Token, func(c *Cluster, ng *nodegroup) (*Update, *wire.Error) {
		next, err := r.targetOf(c, ng, &in)
		if err != nil {
			return nil, err
		}
		next.Progress = r.Now()
		ng.Next = next
		u := r.beginUpdate(ng, "VersionUpdate", next.params(ng))
		r.tickNodegroup(ng, r.Timings().InstancePending)
		return u, nil
	})
}

// params returns the parameters that the update changes.
func (next *Target) params(ng *nodegroup) []updateParam {
	out := []updateParam{{"ReleaseVersion", next.Release}, {"Version", next.Version}}
	if ng.CustomImage {
		out = nil
	}
	if next.Template != nil {
		out = append([]updateParam{{"LaunchTemplateVersion", next.Template.Version}, {"LaunchTemplateName", next.Template.Name}}, out...)
	}
	return out
}

// targetOf checks a version update and creates the version of EKS's launch template for it.
func (r *Region) targetOf(c *Cluster, ng *nodegroup, in *updateVersionInput) (*Target, *wire.Error) {
	template, data, err := targetTemplate(r.ec2, ng, in.Template)
	if err != nil {
		return nil, err
	}
	next := &Target{Version: cmp.Or(in.Version, c.Version), Template: template, Force: in.Force}
	if ng.CustomImage {
		next.Version = ng.Version
	}
	imageID := ""
	if ng.CustomImage {
		if in.Version != "" || in.Release != "" {
			return nil, invalid("You cannot specify the field kubernetesVersion or releaseVersion when using custom AMIs.")
		}
		if imageID, err = r.ec2.ResolveImage(data.Text("ImageId")); err != nil {
			return nil, invalid("%s", err.Message)
		}
		next.Release = imageID
	} else {
		if err := checkVersionStep(c, ng, next.Version, r.Trusting); err != nil {
			return nil, err
		}
		if imageID, next.Release, err = r.amiRelease(ng.AMIType, next.Version, in.Release); err != nil {
			return nil, err
		}
		if err := checkUserText(ng.AMIType, data); err != nil {
			return nil, err
		}
	}
	if err := r.checkDisks(ng.AMIType, imageID, ng.DiskGiB, data); err != nil {
		return nil, err
	}
	types := ng.InstanceTypes
	if t := data.Text("InstanceType"); t != "" {
		if len(ng.InstanceTypes) > 0 {
			return nil, refused("Cannot specify instance types in launch template and API Request")
		}
		types = []string{t}
	}
	if len(types) == 0 {
		types = []string{"t3.medium"}
	}
	hidden := r.ec2.LaunchTemplates.Get(ng.Hidden)
	if hidden == nil {
		return nil, refused("The launch template %s of the nodegroup was not found", ng.Hidden)
	}
	next.Config = ng.config(hiddenVersion(r.ec2, hidden, hiddenData(c, ng, data, imageID)), types)
	return next, nil
}

// hiddenVersion returns the version of EKS's template with the body. It is the default version if that has
// the body, or else a new one.
func hiddenVersion(machines *ec2.Region, hidden *ec2.LaunchTemplate, body wire.Data) int64 {
	if v := hidden.Version(hidden.Default); v != nil && reflect.DeepEqual(v.Data, body) {
		return v.Number
	}
	return machines.AddVersion(hidden, hidden.CreatedBy, body, "").Number
}

// targetTemplate returns the user's launch template after the update: the same template in the requested
// version, or in the current version.
func targetTemplate(machines *ec2.Region, ng *nodegroup, in *Template) (*Template, wire.Data, *wire.Error) {
	switch {
	case ng.Template == nil && in != nil:
		return nil, nil, invalid("You cannot specify a launch template for a nodegroup that was created without one.")
	case ng.Template == nil:
		return nil, nil, nil
	case in == nil:
		in = &Template{ID: ng.Template.ID, Version: ng.Template.Version}
	}
	template, data, err := resolveTemplate(machines, in)
	if err != nil {
		return nil, nil, err
	}
	if template.ID != ng.Template.ID {
		return nil, nil, invalid("You cannot change the launch template of a nodegroup: %s", ng.Template.ID)
	}
	if err := checkUserTemplate(data); err != nil {
		return nil, nil, err
	}
	if err := machines.CheckMetadataTags(data, ec2.TagsFor(data, "instance")); err != nil {
		return nil, nil, refused("%s", err.Message)
	}
	if data.Has("ImageId") != ng.CustomImage {
		return nil, nil, invalid("A nodegroup cannot change between a launch template with an image id and one without.")
	}
	return template, data, nil
}

// checkVersionStep accepts the nodegroup's version or the next one, up to the cluster's version.
func checkVersionStep(c *Cluster, ng *nodegroup, version string, trusting bool) *wire.Error {
	from, to := minorOf(ng.Version), minorOf(version)
	switch {
	case !trusting && !slices.Contains(ec2.KubernetesVersions(), version):
		return invalid("unsupported Kubernetes version: %s", version)
	case to < from:
		return invalid("Nodegroup Kubernetes version %s cannot be downgraded to %s", ng.Version, version)
	case to > minorOf(c.Version):
		return invalid("Nodegroup Kubernetes version %s cannot be newer than the cluster's: %s", version, c.Version)
	case to > from+1:
		return invalid("Nodegroup Kubernetes version can only be updated one minor version at a time: from %s to %s", ng.Version, version)
	}
	return nil
}
