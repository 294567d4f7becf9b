package derive

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// cluster has the values of a cluster that its pools need, as far as the render has them.
type cluster struct {
	key intent.Key
	// known is true if the Cluster object is in the render.
	known bool
	// eks is true if the control plane is an EKS cluster. If the control plane is not in the render, eks is a
	// guess and guessed is true.
	eks     bool
	guessed bool
	broken  bool
	paused  bool

	eksName          string
	controlPlaneName string
	version          kinds.Kubernetes
	lookup           kinds.ImageLookup
	tags             map[string]string
	bastion          bool
	ipv6             *kinds.IPv6
	endpoint         kinds.Endpoint
	serviceCIDR      string
	sshKeyName       string
	network          kinds.Network
	region           string
	roleARN          string
	topology         bool
}

// tagName returns the <cluster> in tag keys.
func (c *cluster) tagName() string {
	if c.eks {
		return c.eksName
	}
	return c.key.Name
}

// intent returns the cluster's intent.
func (c *cluster) intent() intent.Cluster {
	out := intent.Cluster{
		Key: c.key, TagName: c.tagName(), EKSName: c.eksName, ControlPlaneName: c.controlPlaneName, ControlPlaneVersion: c.version.Text,
		Region: c.region, Paused: c.paused, Topology: c.topology, Tags: c.tags, Endpoint: c.hostPort(), ServiceCIDR: c.serviceCIDR,
		SSHKeyName: c.sshKeyName, RoleARN: c.roleARN,
		Network: intent.Network{VPCID: c.network.VPC.ID, SecurityGroups: c.network.SecurityGroupOverrides},
	}
	for _, s := range c.network.Subnets {
		id := s.ResourceID
		if id == "" && strings.HasPrefix(s.ID, "subnet-") {
			id = s.ID
		}
		edge := s.ZoneType != nil && *s.ZoneType != "availability-zone"
		// A subnet without an id is one that CAPA would create. Edge zones have no pools. weir finds such
		// subnets by tags, or does not use them.
		if id != "" && !edge {
			out.Network.Subnets = append(out.Network.Subnets, intent.Subnet{ID: id, Zone: s.AvailabilityZone, Public: s.IsPublic})
		}
	}
	return out
}

// hostPort returns the endpoint of the API server, as host or host:port.
func (c *cluster) hostPort() string {
	if c.endpoint.Host == "" || c.endpoint.Port == 0 {
		return c.endpoint.Host
	}
	return c.endpoint.Host + ":" + strconv.Itoa(int(c.endpoint.Port))
}

// cluster returns the cluster of a pool. If it is not in the render, only its name is known, because its
// manifests may be in another directory.
func (b *Builder) cluster(key intent.Key, needsEKS bool, r kinds.Reporter) *cluster {
	if c, ok := b.clusters[key]; ok {
		return c
	}
	c := &cluster{key: key, eks: needsEKS, guessed: needsEKS}
	if needsEKS {
		c.eksName = key.Name
		r.Warn(path("spec", "clusterName"), "control-plane-not-in-render",
			fmt.Sprintf("the control plane of cluster %s is not in the render; %q is used as the EKS cluster's name", key, key.Name),
			"render the Cluster and its AWSManagedControlPlane with the pool if the name differs")
	}
	return c
}

// readClusters reads all Clusters of the render.
func (b *Builder) readClusters() {
	for _, o := range b.index.Clusters.Sorted() {
		c := b.readCluster(o)
		b.clusters[c.key] = c
		if !c.broken {
			b.set.Clusters = append(b.set.Clusters, c.intent())
		}
	}
}

// readCluster collects the facts about a Cluster that its pools need, from the object and from the control
// plane or infrastructure that it refers to.
func (b *Builder) readCluster(o *kinds.Decoded[kinds.ClusterSpec]) *cluster {
	c := &cluster{key: o.Key(), known: true, broken: o.Broken, endpoint: o.Spec.ControlPlaneEndpoint}
	r := o.Reporter(b.faults)
	c.paused = o.Spec.Paused || isPaused(o.Metadata)
	if n := o.Spec.ClusterNetwork; n != nil && n.Services != nil && len(n.Services.CIDRBlocks) > 0 {
		c.serviceCIDR = n.Services.CIDRBlocks[0]
	}
	if o.Source.Has("spec", "topology") {
		c.topology = true
		r.Warn(path("spec", "topology"), "topology-not-expanded", "the ClusterClass of "+o.Ref().String()+" is not expanded",
			"weir does not see the pools that the class creates, so it deletes nothing of the cluster")
	}
	if ref := o.Spec.InfrastructureRef; ref != nil && ref.Kind == "AWSManagedCluster" {
		if mc, ok := b.index.ManagedClusters[intent.Key{Namespace: c.key.Namespace, Name: ref.Name}]; ok && c.endpoint.Host == "" {
			c.endpoint = mc.Spec.ControlPlaneEndpoint
		}
	}
	if ref, at := managedControlPlaneRef(&o.Spec); ref != nil {
		b.readManaged(c, r, ref, at)
	} else if ref := o.Spec.InfrastructureRef; ref != nil && ref.Kind == "AWSCluster" {
		b.readSelfManaged(c, r, ref)
	}
	return c
}

// managedControlPlaneRef returns the reference to an EKS control plane. Older manifests have it in
// infrastructureRef.
func managedControlPlaneRef(s *kinds.ClusterSpec) (*kinds.ObjectReference, intent.Path) {
	for _, c := range []struct {
		ref *kinds.ObjectReference
		at  string
	}{{s.ControlPlaneRef, "controlPlaneRef"}, {s.InfrastructureRef, "infrastructureRef"}} {
		if c.ref != nil && c.ref.Kind == "AWSManagedControlPlane" {
			return c.ref, path("spec", c.at)
		}
	}
	return nil, nil
}

// readManaged adds the facts of the EKS control plane that ref at the given path names. If the render does
// not have it, the name of the Cluster serves as the name of the EKS cluster, and the facts count as
// guessed.
func (b *Builder) readManaged(c *cluster, r kinds.Reporter, ref *kinds.ObjectReference, at intent.Path) {
	c.eks, c.eksName, c.controlPlaneName = true, c.key.Name, ref.Name
	cp, ok := b.index.ControlPlanes[intent.Key{Namespace: c.key.Namespace, Name: ref.Name}]
	if !ok {
		c.guessed = true
		b.dangling(r, at.Join("name"), ref, diag.Warning, "control-plane-not-in-render",
			fmt.Sprintf("%q is used as the EKS cluster's name", c.eksName))
		return
	}
	s := &cp.Spec
	c.broken = c.broken || cp.Broken
	c.eksName = s.EKSClusterName
	cr := cp.Reporter(b.faults)
	if s.Version != nil {
		v, ok := kinds.ParseEKS(*s.Version)
		if !ok {
			cr.Error(path("spec", "version"), "bad-version", fmt.Sprintf("%q is not a Kubernetes version", *s.Version), "write v1.31.0 or 1.31")
			c.broken = true
		}
		c.version = v
	}
	if s.SSHKeyName != nil {
		c.sshKeyName = *s.SSHKeyName
	}
	c.ipv6, c.bastion = s.Network.VPC.IPv6, s.Bastion.Enabled
	b.common(c, cr, s.ImageLookup, s.AdditionalTags, kinds.Network(s.Network), s.Region, s.ControlPlaneEndpoint, s.IdentityRef)
}

func (b *Builder) readSelfManaged(c *cluster, r kinds.Reporter, ref *kinds.ObjectReference) {
	aws, ok := b.index.AWSClusters[intent.Key{Namespace: c.key.Namespace, Name: ref.Name}]
	if !ok {
		b.dangling(r, path("spec", "infrastructureRef", "name"), ref, diag.Warning, "reference-not-in-render",
			"its network and tags are not known")
		return
	}
	s := &aws.Spec
	c.broken = c.broken || aws.Broken
	b.common(c, aws.Reporter(b.faults), s.ImageLookup, s.AdditionalTags, s.Network, s.Region, s.ControlPlaneEndpoint, s.IdentityRef)
}

// common reads the fields that AWSCluster and AWSManagedControlPlane share.
func (b *Builder) common(c *cluster, r kinds.Reporter, lookup kinds.ImageLookup, tags map[string]string, n kinds.Network, region string, e kinds.Endpoint, id *kinds.IdentityReference) {
	before := len(b.faults.List)
	rules.CheckTags(r, path("spec", "additionalTags"), tags)
	if lookup.ImageLookupFormat != "" {
		rules.CheckImageFormat(r, path("spec", "imageLookupFormat"), lookup.ImageLookupFormat)
	}
	c.lookup, c.tags, c.network, c.region = lookup, fewTags(tags), n, region
	if c.endpoint.Host == "" {
		c.endpoint = e
	}
	if id != nil {
		c.roleARN = b.identity(r, id)
	}
	fresh := kinds.Faults{List: b.faults.List[before:]}
	c.broken = c.broken || fresh.HasErrors()
}

// identity returns the ARN of the role that weir assumes for a cluster. It is empty for weir's own
// credentials, and after a fault.
func (b *Builder) identity(r kinds.Reporter, id *kinds.IdentityReference) string {
	at := path("spec", "identityRef")
	switch id.Kind {
	case "AWSClusterControllerIdentity":
		return ""
	case "AWSClusterStaticIdentity":
		r.Error(at.Join("kind"), "static-identity", "AWSClusterStaticIdentity is refused: AWS keys do not come from Git",
			"use AWSClusterRoleIdentity, or leave identityRef out and give weir its credentials in its environment")
		return ""
	}
	role, ok := b.index.Roles[intent.Key{Name: id.Name}]
	if !ok {
		b.dangling(r, at.Join("name"), &kinds.ObjectReference{Kind: id.Kind, Name: id.Name}, diag.Error, "reference-not-found",
			"render the identity with the cluster")
		return ""
	}
	s, rr := &role.Spec, role.Reporter(b.faults)
	if allowed, known := s.AllowedNamespaces.Allows(r.Ref.Namespace); !allowed {
		detail := "name the namespace in spec.allowedNamespaces.list, or write allowedNamespaces: {} for all"
		if !known {
			detail = "the labels of namespaces are not known here: " + detail
		}
		rr.Error(path("spec", "allowedNamespaces"), "identity-not-allowed", fmt.Sprintf("%s does not allow namespace %q", role.Ref(), r.Ref.Namespace), detail)
	}
	if src := s.SourceIdentityRef; src != nil && src.Kind != "AWSClusterControllerIdentity" {
		rr.Unsupported(path("spec", "sourceIdentityRef"), "a chain of identities", "let weir's own credentials assume the role")
	}
	for field, written := range map[string]bool{"externalID": s.ExternalID != "", "inlinePolicy": s.InlinePolicy != "", "policyARNs": len(s.PolicyARNs) > 0} {
		if written {
			rr.Unsupported(path("spec", field), "spec."+field+" of an AWSClusterRoleIdentity", "set it where weir's own credentials are configured")
		}
	}
	return s.RoleARN
}

func isPaused(m kinds.Meta) bool {
	_, ok := m.Annotations[kinds.AnnotationPaused]
	return ok
}
