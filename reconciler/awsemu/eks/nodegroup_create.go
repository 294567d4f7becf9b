package eks

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

type createNodegroupInput struct {
	Name          string            `json:"nodegroupName"`
	Scaling       *scaling          `json:"scalingConfig"`
	DiskGiB       *int64            `json:"diskSize"`
	Subnets       []string          `json:"subnets"`
	InstanceTypes []string          `json:"instanceTypes"`
	AMIType       string            `json:"amiType"`
	RemoteAccess  *remoteAccess     `json:"remoteAccess"`
	NodeRole      string            `json:"nodeRole"`
	Labels        map[string]string `json:"labels"`
	Taints        []taint           `json:"taints"`
	Tags          map[string]string `json:"tags"`
	Token         string            `json:"clientRequestToken"`
	Template      *Template         `json:"launchTemplate"`
	UpdateConfig  updateConfig      `json:"updateConfig"`
	Repair        *repairConfig     `json:"nodeRepairConfig"`
	CapacityType  string            `json:"capacityType"`
	Version       string            `json:"version"`
	Release       string            `json:"releaseVersion"`
	WarmPool      *warmPoolConfig   `json:"warmPoolConfig"`

	data    wire.Data // the body of the user's launch template
	imageID string
}

func createNodegroup(rq *request, in createNodegroupInput) (any, error) {
	r := rq.Region
	cluster := rq.Label("name")
	alive := func(name string) bool {
		c := r.Clusters.Get(cluster)
		return c != nil && c.Nodegroups.Has(name)
	}
	err := rq.Idempotent(in.Token, alive, func() (string, error) {
		c, err := findCluster(r.Clusters, cluster)
		if err != nil {
			return "", err
		}
		if err := in.check(r, c); err != nil {
			return "", err.With("clusterName", cluster).With("nodegroupName", in.Name)
		}
		ng, err := r.addNodegroup(c, &in)
		if err != nil {
			return "", err
		}
		rq.Reply = ng.out(r)
		return ng.Name, nil
	})
	return rq.Reply, err
}

// check applies all rules for a new nodegroup and fills in EKS's defaults.
func (in *createNodegroupInput) check(r *Region, c *Cluster) *wire.Error {
	switch {
	case !validEKSName(in.Name, 63):
		return invalid("The nodegroup name '%s' is not valid: it starts with a letter or digit, holds letters, digits, hyphens and underscores, and has at most 63 characters.", in.Name)
	case c.Nodegroups.Has(in.Name):
		return wire.Fail("ResourceInUseException", "NodeGroup already exists with name %s and cluster name %s", in.Name, c.Name)
	case c.Status != active:
		return refused("Cluster '%s' is not in ACTIVE status", c.Name)
	case c.Nodegroups.Len() >= r.Quota("nodegroups-per-cluster"):
		return wire.Fail("ResourceLimitExceededException", "The maximum number of nodegroups in a cluster is %d", r.Quota("nodegroups-per-cluster"))
	}
	for _, check := range []func(*Region, *Cluster) *wire.Error{in.checkRoleAndSubnets, in.checkSizes, in.checkTemplate, in.checkMachine} {
		if err := check(r, c); err != nil {
			return err
		}
	}
	for _, err := range []*wire.Error{
		checkLabels(in.Labels), checkTaints(in.Taints), checkEKSTags(in.Tags, r.Quota("tags")),
		in.UpdateConfig.check(), in.Repair.check(), in.WarmPool.check(in.custom()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// custom reports whether the user's launch template names the image.
func (in *createNodegroupInput) custom() bool { return in.data.Has("ImageId") }

func (in *createNodegroupInput) checkRoleAndSubnets(r *Region, c *Cluster) *wire.Error {
	if r.Trusting {
		return nil
	}
	if in.NodeRole == "" || !r.iam.Entities.HasRoleARN(in.NodeRole) {
		return invalid("The role with name %s cannot be found.", in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:])
	}
	if ro := r.iam.Entities.Roles[in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:]]; ro.Trust == "eks.amazonaws.com" {
		return invalid("Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole %s", in.NodeRole)
	}
	if ro := r.iam.Entities.Roles[in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:]]; !ro.OfNodes() {
		return invalid("The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policies [%s, %s] are attached",
			r.iam.PolicyARN("AmazonEKSWorkerNodePolicy"), r.iam.PolicyARN("AmazonEC2ContainerRegistryReadOnly"))
	}
	if len(in.Subnets) == 0 {
		return invalid("Subnets cannot be empty.")
	}
	for i, id := range in.Subnets {
		s := r.ec2.Subnets.Get(id)
		switch {
		case s == nil:
			return invalid("The subnet ID '%s' does not exist", id)
		case s.VpcID != c.VpcID:
			return invalid("Subnets %s do not belong to the VPC %s of the cluster", id, c.VpcID)
		case slices.Contains(in.Subnets[:i], id):
			return invalid("Duplicate subnet: %s", id)
		}
	}
	return nil
}

func (in *createNodegroupInput) checkSizes(r *Region, _ *Cluster) *wire.Error {
	if in.Scaling == nil {
		one, two := int64(1), int64(2)
		in.Scaling = &scaling{Min: &one, Max: &two, Desired: &two}
	}
	s := in.Scaling
	if s.Min == nil || s.Max == nil || s.Desired == nil {
		return invalid("A scaling configuration must have minSize, maxSize and desiredSize")
	}
	if err := s.check(r.Quota("nodes-per-nodegroup")); err != nil {
		return err
	}
	return in.UpdateConfig.fits(*s.Max)
}

// checkTemplate checks the launch template and the settings that a request must not combine with it.
func (in *createNodegroupInput) checkTemplate(r *Region, _ *Cluster) *wire.Error {
	template, data, err := resolveTemplate(r.ec2, in.Template)
	if err != nil || template == nil {
		return err
	}
	in.Template, in.data = template, data
	if err := checkUserTemplate(data); err != nil {
		return err
	}
	if err := r.ec2.CheckMetadataTags(data, ec2.TagsFor(data, "instance")); err != nil {
		return refused("%s", err.Message)
	}
	switch {
	case in.DiskGiB != nil:
		return invalid("Disk size must be specified within the launch template.")
	case in.RemoteAccess != nil:
		return invalid("Remote access configuration cannot be specified with a launch template.")
	case data.Has("InstanceType") && len(in.InstanceTypes) > 0:
		return refused("Cannot specify instance types in launch template and API Request")
	case !in.custom():
		return nil
	case in.AMIType != "" && in.AMIType != "CUSTOM":
		return invalid("You cannot specify an AMI Type other than CUSTOM, when specifying an image id in your launch template.")
	case in.Version != "":
		return invalid("You cannot specify the field kubernetesVersion when using custom AMIs.")
	case in.Release != "":
		return invalid("You cannot specify the field releaseVersion when using custom AMIs.")
	}
	return nil
}

// checkMachine sets the image, the instance types and the capacity type.
func (in *createNodegroupInput) checkMachine(r *Region, c *Cluster) *wire.Error {
	if a := in.RemoteAccess; a != nil && a.Key != "" && !r.Trusting && r.ec2.KeyByName(a.Key) == nil {
		return invalid("KeyPair %s not found", a.Key)
	}
	in.CapacityType = cmp.Or(in.CapacityType, "ON_DEMAND")
	if !slices.Contains([]string{"ON_DEMAND", "SPOT"}, in.CapacityType) {
		return invalid("The capacity type %s is not one of ON_DEMAND, SPOT", in.CapacityType)
	}
	if in.AMIType == "CUSTOM" && !in.custom() {
		return invalid("Launch template details can't be null for Custom ami type node group")
	}
	if in.Version != "" && in.Version != c.Version {
		return invalid("Requested Kubernetes version %s of the nodegroup must be the cluster's: %s", in.Version, c.Version)
	}
	in.Version = c.Version
	if in.custom() {
		image, err := r.ec2.ResolveImage(in.data.Text("ImageId"))
		if err != nil {
			return invalid("%s", err.Message)
		}
		in.AMIType, in.Release, in.imageID = "CUSTOM", image, image
	} else {
		in.AMIType = cmp.Or(in.AMIType, defaultAMIType(c.Version))
		var err *wire.Error
		if in.imageID, in.Release, err = r.amiRelease(in.AMIType, in.Version, in.Release); err != nil {
			return err
		}
		if err := checkUserText(in.AMIType, in.data); err != nil {
			return err
		}
	}
	if in.Template == nil && in.DiskGiB == nil {
		twenty := int64(20)
		in.DiskGiB = &twenty
	}
	if in.DiskGiB != nil && (*in.DiskGiB < 1 || *in.DiskGiB > 16384) {
		return invalid("diskSize must be from 1 to 16384 GiB")
	}
	if err := r.checkDisks(in.AMIType, in.imageID, in.DiskGiB, in.data); err != nil {
		return err
	}
	if len(in.InstanceTypes) == 0 && !in.data.Has("InstanceType") {
		in.InstanceTypes = []string{"t3.medium"}
	}
	if r.Trusting {
		return nil
	}
	return checkTypes(in.launchTypes(), in.AMIType)
}

// launchTypes returns the instance types that nodes may have.
func (in *createNodegroupInput) launchTypes() []string {
	if t := in.data.Text("InstanceType"); t != "" {
		return []string{t}
	}
	return in.InstanceTypes
}

// addNodegroup creates the nodegroup of a valid request, with its instance profile, its hidden launch
// template and its Auto Scaling group.
func (r *Region) addNodegroup(c *Cluster, in *createNodegroupInput) (*nodegroup, error) {
	ng := &nodegroup{
		Name: in.Name, UUID: r.NewUUID("nodegroup"), Cluster: c.Name, Created: r.Now(), Version: in.Version, Release: in.Release,
		AMIType: in.AMIType, CapacityType: in.CapacityType, InstanceTypes: in.InstanceTypes, Subnets: in.Subnets, NodeRole: in.NodeRole,
		Labels: map[string]string{}, Taints: in.Taints, RemoteAccess: in.RemoteAccess, DiskGiB: in.DiskGiB, Scaling: *in.Scaling,
		UpdateConfig: in.UpdateConfig, Repair: in.Repair, WarmPool: (*warmPoolConfig)(nil).merged(in.WarmPool), Template: in.Template, CustomImage: in.custom(), Tags: map[string]string{},
	}
	for k, v := range in.Labels {
		ng.Labels[k] = v
	}
	for k, v := range in.Tags {
		ng.Tags[k] = v
	}
	if ng.UpdateConfig.Max == nil && ng.UpdateConfig.Percentage == nil {
		one := int64(1)
		ng.UpdateConfig.Max = &one
	}
	ng.ARN = r.ARN("eks", "nodegroup/"+c.Name+"/"+ng.Name+"/"+ng.UUID)
	ng.Group = "eks-" + ng.Name + "-" + ng.UUID
	role := in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:]
	r.iam.Entities.AddInstanceProfile("eks-"+ng.UUID, role, r.Now())
	ts := world.Tags{}
	ts.Set("eks:cluster-name", c.Name)
	ts.Set("eks:nodegroup-name", ng.Name)
	hidden := r.ec2.AddTemplate("eks-"+ng.UUID, "arn:aws:sts::"+r.Account+":assumed-role/AWSServiceRoleForAmazonEKSNodegroup/EKS",
		hiddenData(c, ng, in.data, in.imageID), "", ts)
	ng.Hidden = hidden.ID
	if err := r.addNodegroupGroup(ng, in.launchTypes()); err != nil {
		return nil, err
	}
	ng.enter(r, creating)
	c.Nodegroups.Put(ng.Name, ng)
	r.tickNodegroup(ng, r.Timings().NodegroupCreate)
	return ng, nil
}

// config returns the group's launch configuration: EKS's template with an override for each instance type.
func (ng *nodegroup) config(version int64, types []string) asg.GroupConfig {
	m := &asg.MixedPolicy{
		Base:         asg.TemplateSpec{ID: ng.Hidden, Name: "eks-" + ng.UUID, Version: wire.Decimal(version)},
		Distribution: asg.Distribution{OnDemandStrategy: "prioritized", OnDemandPercent: 100, SpotStrategy: "capacity-optimized"},
	}
	if ng.CapacityType == "SPOT" {
		m.Distribution.OnDemandPercent, m.Distribution.SpotStrategy = 0, "price-capacity-optimized"
	}
	for _, t := range types {
		m.Overrides = append(m.Overrides, asg.Override{InstanceType: t})
	}
	return asg.GroupConfig{Mixed: m}
}

// addNodegroupGroup creates the Auto Scaling group with EKS's tags.
func (r *Region) addNodegroupGroup(ng *nodegroup, types []string) error {
	subnets := strings.Join(ng.Subnets, ",")
	in := asg.GroupInput{MinSize: ng.Scaling.Min, MaxSize: ng.Scaling.Max, DesiredCapacity: ng.Scaling.Desired, VPCZoneIdentifier: &subnets, MixedInstancesPolicy: &asg.PolicyInput{
		LaunchTemplate: &asg.PolicyTemplate{LaunchTemplateSpecification: &asg.SpecInput{LaunchTemplateID: ng.Hidden, Version: "1"}},
	}}
	g, err := in.Changed(r.asg, nil)
	if err != nil {
		return err
	}
	g.Config, g.ManagedBy, g.Grace = ng.config(1, types), "eks", 15
	for _, t := range [][2]string{
		{"eks:cluster-name", ng.Cluster}, {"eks:nodegroup-name", ng.Name},
		{"k8s.io/cluster-autoscaler/" + ng.Cluster, "owned"}, {"k8s.io/cluster-autoscaler/enabled", "true"},
		{"kubernetes.io/cluster/" + ng.Cluster, "owned"},
	} {
		g.SetTag(asg.GroupTag{Key: t[0], Value: t[1], Propagate: true})
	}
	partition := world.Partition(r.Name)
	g.AddNodegroupHooks("arn:"+partition+":sns:"+r.Name+":"+r.Account+":eks-asg-lifecycle-hook-topic",
		"arn:"+partition+":iam::"+r.Account+":role/aws-service-role/eks-nodegroup.amazonaws.com/AWSServiceRoleForAmazonEKSNodegroup")
	r.asg.AddGroup(g, ng.Group)
	r.applyWarm(ng)
	r.asg.Touch(g)
	return nil
}
