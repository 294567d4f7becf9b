package awsemu

import "strings"

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
	Template      *ngTemplate       `json:"launchTemplate"`
	UpdateConfig  updateConfig      `json:"updateConfig"`
	Repair        *repairConfig     `json:"nodeRepairConfig"`
	CapacityType  string            `json:"capacityType"`
	Version       string            `json:"version"`
	Release       string            `json:"releaseVersion"`
	WarmPool      *warmPoolConfig   `json:"warmPoolConfig"`

	data    ltData // the body of the user's launch template
	imageID string
}

func createNodegroup(rq *request, in createNodegroupInput) (any, error) {
	r := rq.region
	cluster := rq.label("name")
	alive := func(name string) bool {
		c := r.EKS.Clusters.get(cluster)
		return c != nil && c.Nodegroups.has(name)
	}
	err := rq.idempotent(in.Token, alive, func() (string, error) {
		c, err := r.findCluster(cluster)
		if err != nil {
			return "", err
		}
		if err := in.check(r, c); err != nil {
			return "", err.with("clusterName", cluster).with("nodegroupName", in.Name)
		}
		ng, err := r.addNodegroup(c, &in)
		if err != nil {
			return "", err
		}
		rq.reply = ng.out(r)
		return ng.Name, nil
	})
	return rq.reply, err
}

// check applies all rules of a new nodegroup and fills in EKS's defaults.
func (in *createNodegroupInput) check(r *region, c *eksCluster) *apiError {
	switch {
	case !validEKSName(in.Name, 63):
		return eksInvalid("The nodegroup name '%s' is not valid: it starts with a letter or digit, holds letters, digits, hyphens and underscores, and has at most 63 characters.", in.Name)
	case c.Nodegroups.has(in.Name):
		return fail("ResourceInUseException", "NodeGroup already exists with name %s and cluster name %s", in.Name, c.Name)
	case c.Status != eksActive:
		return eksRefused("Cluster '%s' is not in ACTIVE status", c.Name)
	case c.Nodegroups.len() >= r.quota("nodegroups-per-cluster"):
		return fail("ResourceLimitExceededException", "The maximum number of nodegroups in a cluster is %d", r.quota("nodegroups-per-cluster"))
	}
	for _, check := range []func(*region, *eksCluster) *apiError{in.checkPlaces, in.checkSizes, in.checkTemplate, in.checkMachine} {
		if err := check(r, c); err != nil {
			return err
		}
	}
	for _, err := range []*apiError{
		checkLabels(in.Labels), checkTaints(in.Taints), checkEKSTags(in.Tags, r.quota("tags")),
		in.UpdateConfig.check(), in.Repair.check(), in.WarmPool.check(in.custom()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// custom says whether the user's launch template names the image.
func (in *createNodegroupInput) custom() bool { return in.data.has("ImageId") }

func (in *createNodegroupInput) checkPlaces(r *region, c *eksCluster) *apiError {
	if in.NodeRole == "" || !r.account().hasRoleARN(in.NodeRole) {
		return eksInvalid("The role with name %s cannot be found.", in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:])
	}
	if ro := r.account().Roles[in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:]]; ro.Trust == "eks.amazonaws.com" {
		return eksInvalid("Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of nodeRole %s", in.NodeRole)
	}
	if ro := r.account().Roles[in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:]]; !ro.ofNodes() {
		return eksInvalid("The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policies [%s, %s] are attached",
			r.policyARN("AmazonEKSWorkerNodePolicy"), r.policyARN("AmazonEC2ContainerRegistryReadOnly"))
	}
	if len(in.Subnets) == 0 {
		return eksInvalid("Subnets cannot be empty.")
	}
	for i, id := range in.Subnets {
		s := r.EC2.Subnets.get(id)
		switch {
		case s == nil:
			return eksInvalid("The subnet ID '%s' does not exist", id)
		case s.VpcID != c.VpcID:
			return eksInvalid("Subnets %s do not belong to the VPC %s of the cluster", id, c.VpcID)
		case contains(in.Subnets[:i], id):
			return eksInvalid("Duplicate subnet: %s", id)
		}
	}
	return nil
}

// ofNodes says whether the role has the policies that EKS asks of a node's.
func (ro *role) ofNodes() bool {
	return contains(ro.Policies, "AmazonEKSWorkerNodePolicy") &&
		(contains(ro.Policies, "AmazonEC2ContainerRegistryReadOnly") || contains(ro.Policies, "AmazonEC2ContainerRegistryPullOnly"))
}

func (in *createNodegroupInput) checkSizes(r *region, _ *eksCluster) *apiError {
	if in.Scaling == nil {
		one, two := int64(1), int64(2)
		in.Scaling = &scaling{Min: &one, Max: &two, Desired: &two}
	}
	s := in.Scaling
	if s.Min == nil || s.Max == nil || s.Desired == nil {
		return eksInvalid("A scaling configuration must have minSize, maxSize and desiredSize")
	}
	if err := s.check(r.quota("nodes-per-nodegroup")); err != nil {
		return err
	}
	return in.UpdateConfig.fits(*s.Max)
}

// checkTemplate checks the launch template and what must not be given beside it.
func (in *createNodegroupInput) checkTemplate(r *region, _ *eksCluster) *apiError {
	template, data, err := r.resolveTemplate(in.Template)
	if err != nil || template == nil {
		return err
	}
	in.Template, in.data = template, data
	if err := checkUserTemplate(data); err != nil {
		return err
	}
	if err := r.checkMetadataTags(data, data.tagsFor("instance")); err != nil {
		return eksRefused("%s", err.Message)
	}
	switch {
	case in.DiskGiB != nil:
		return eksInvalid("Disk size must be specified within the launch template.")
	case in.RemoteAccess != nil:
		return eksInvalid("Remote access configuration cannot be specified with a launch template.")
	case data.has("InstanceType") && len(in.InstanceTypes) > 0:
		return eksRefused("Cannot specify instance types in launch template and API Request")
	case !in.custom():
		return nil
	case in.AMIType != "" && in.AMIType != "CUSTOM":
		return eksInvalid("You cannot specify an AMI Type other than CUSTOM, when specifying an image id in your launch template.")
	case in.Version != "":
		return eksInvalid("You cannot specify the field kubernetesVersion when using custom AMIs.")
	case in.Release != "":
		return eksInvalid("You cannot specify the field releaseVersion when using custom AMIs.")
	}
	return nil
}

// checkMachine settles image, types and how they are bought.
func (in *createNodegroupInput) checkMachine(r *region, c *eksCluster) *apiError {
	if a := in.RemoteAccess; a != nil && a.Key != "" && r.keyByName(a.Key) == nil {
		return eksInvalid("KeyPair %s not found", a.Key)
	}
	in.CapacityType = first(in.CapacityType, "ON_DEMAND")
	if !contains([]string{"ON_DEMAND", "SPOT"}, in.CapacityType) {
		return eksInvalid("The capacity type %s is not one of ON_DEMAND, SPOT", in.CapacityType)
	}
	if in.AMIType == "CUSTOM" && !in.custom() {
		return eksInvalid("Launch template details can't be null for Custom ami type node group")
	}
	if in.Version != "" && in.Version != c.Version {
		return eksInvalid("Requested Kubernetes version %s of the nodegroup must be the cluster's: %s", in.Version, c.Version)
	}
	in.Version = c.Version
	if in.custom() {
		image, err := r.resolveImage(in.data.text("ImageId"))
		if err != nil {
			return eksInvalid("%s", err.Message)
		}
		in.AMIType, in.Release, in.imageID = "CUSTOM", image, image
	} else {
		in.AMIType = first(in.AMIType, defaultAMIType(c.Version))
		var err *apiError
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
		return eksInvalid("diskSize must be from 1 to 16384 GiB")
	}
	if len(in.InstanceTypes) == 0 && !in.data.has("InstanceType") {
		in.InstanceTypes = []string{"t3.medium"}
	}
	return checkTypes(in.launchTypes(), in.AMIType)
}

// launchTypes are the instance types that nodes may have.
func (in *createNodegroupInput) launchTypes() []string {
	if t := in.data.text("InstanceType"); t != "" {
		return []string{t}
	}
	return in.InstanceTypes
}

// addNodegroup makes a nodegroup of a checked request: its instance profile, its
// hidden launch template and its Auto Scaling group.
func (r *region) addNodegroup(c *eksCluster, in *createNodegroupInput) (*nodegroup, error) {
	ng := &nodegroup{
		Name: in.Name, UUID: r.newUUID("nodegroup"), Cluster: c.Name, Created: r.now(), Version: in.Version, Release: in.Release,
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
	ng.ARN = r.arn("eks", "nodegroup/"+c.Name+"/"+ng.Name+"/"+ng.UUID)
	ng.Group = "eks-" + ng.Name + "-" + ng.UUID
	role := in.NodeRole[strings.LastIndex(in.NodeRole, "/")+1:]
	r.account().addInstanceProfile("eks-"+ng.UUID, role, r.now())
	ts := tags{}
	ts.set("eks:cluster-name", c.Name)
	ts.set("eks:nodegroup-name", ng.Name)
	hidden := r.addTemplate("eks-"+ng.UUID, "arn:aws:sts::"+r.Account+":assumed-role/AWSServiceRoleForAmazonEKSNodegroup/EKS",
		r.hiddenData(c, ng, in.data, in.imageID), "", ts)
	ng.Hidden = hidden.ID
	if err := r.addNodegroupGroup(ng, in.launchTypes()); err != nil {
		return nil, err
	}
	ng.enter(r, eksCreating)
	c.Nodegroups.put(ng.Name, ng)
	r.tickNodegroup(ng, r.timings().NodegroupCreate)
	return ng, nil
}

// config is what the group launches: EKS's template with an override for
// each instance type.
func (ng *nodegroup) config(version int64, types []string) groupConfig {
	m := &mixedPolicy{
		Base:         ltSpec{ID: ng.Hidden, Name: "eks-" + ng.UUID, Version: decimal(version)},
		Distribution: distribution{OnDemandStrategy: "prioritized", OnDemandPercent: 100, SpotStrategy: "capacity-optimized"},
	}
	if ng.CapacityType == "SPOT" {
		m.Distribution.OnDemandPercent, m.Distribution.SpotStrategy = 0, "price-capacity-optimized"
	}
	for _, t := range types {
		m.Overrides = append(m.Overrides, override{InstanceType: t})
	}
	return groupConfig{Mixed: m}
}

// addNodegroupGroup makes the Auto Scaling group with EKS's tags.
func (r *region) addNodegroupGroup(ng *nodegroup, types []string) error {
	subnets := strings.Join(ng.Subnets, ",")
	in := groupInput{min: ng.Scaling.Min, max: ng.Scaling.Max, desired: ng.Scaling.Desired, subnets: &subnets, mixed: &mixedInput{
		base: &ltSpec{ID: ng.Hidden, Version: "1"},
	}}
	g, err := in.changed(r, nil)
	if err != nil {
		return err
	}
	g.Config, g.ManagedBy, g.Grace = ng.config(1, types), "eks", 15
	for _, t := range [][2]string{
		{"eks:cluster-name", ng.Cluster}, {"eks:nodegroup-name", ng.Name},
		{"k8s.io/cluster-autoscaler/" + ng.Cluster, "owned"}, {"k8s.io/cluster-autoscaler/enabled", "true"},
		{"kubernetes.io/cluster/" + ng.Cluster, "owned"},
	} {
		g.setTag(groupTag{Key: t[0], Value: t[1], Propagate: true})
	}
	r.addGroup(g, ng.Group)
	r.applyWarm(ng)
	r.touch(g)
	return nil
}
