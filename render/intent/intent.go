// Package intent defines the desired state of AWS: the result of rendering Git, with every default filled in.
// For values that only AWS knows, it has a typed Lookup. The values are immutable after they are returned,
// comparable in tests, and printable. Names come from AWS and Cluster API.
package intent

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// Set is the desired state of a target, from one render.
type Set struct {
	// Pools are sorted by Key.
	Pools []Pool
	// Clusters are sorted by Key. The cluster of a pool may be missing, as its manifest may be in another
	// directory.
	Clusters []Cluster
	// Rollouts are sorted by Key.
	Rollouts []FleetRollout `json:",omitempty"`
	// Ignored counts the objects of kinds that weir does not manage.
	Ignored []Ignored
	// Unplanned lists the manifests that result in no pool, sorted by Key.
	Unplanned []Unplanned `json:",omitempty"`
}

// Ignored is a kind that weir does not manage, and the number of its objects.
type Ignored struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
}

// Key identifies a pool or cluster inside a target. The key of a pool is the namespace and name of its
// MachinePool.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns namespace/name, the value of the tag weir.dev/pool.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

func (k Key) compare(o Key) int {
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Sort sorts pools and clusters by key.
func (s *Set) Sort() {
	slices.SortStableFunc(s.Pools, func(a, b Pool) int { return a.Key.compare(b.Key) })
	slices.SortStableFunc(s.Unplanned, func(a, b Unplanned) int { return a.Key.compare(b.Key) })
	slices.SortStableFunc(s.Clusters, func(a, b Cluster) int { return a.Key.compare(b.Key) })
}

// Cluster returns the cluster with key k, and whether the set contains it.
func (s *Set) Cluster(k Key) (Cluster, bool) {
	i, found := slices.BinarySearchFunc(s.Clusters, k, func(c Cluster, k Key) int { return c.Key.compare(k) })
	if !found {
		return Cluster{}, false
	}
	return s.Clusters[i], true
}

// Pool returns the pool whose key has the given string form, or nil.
func (s *Set) Pool(name string) *Pool {
	var k Key
	k.Namespace, k.Name, _ = strings.Cut(name, "/")
	i, found := slices.BinarySearchFunc(s.Pools, k, func(p Pool, k Key) int { return p.Key.compare(k) })
	if !found {
		return nil
	}
	return &s.Pools[i]
}

// Number is an optional number of the manifest. Value is always usable. If it was not written, weir uses
// Value only to create something, and does not compare it with AWS afterwards.
type Number struct {
	Value   int32 `json:"value"`
	Written bool  `json:"written"`
}

// Cluster has the values of a cluster's objects that its pools need.
type Cluster struct {
	Key Key `json:"key"`
	// TagName is the <cluster> in tag keys: the name of the Cluster, or of the EKS cluster if the control
	// plane is managed.
	TagName string `json:"tagName"`
	// EKSName is the EKS cluster's name, empty for a self-managed cluster.
	EKSName string `json:"eksName,omitempty"`
	// ControlPlaneName is the AWSManagedControlPlane's metadata.name.
	ControlPlaneName string `json:"controlPlaneName,omitempty"`
	// ControlPlaneVersion is the desired Kubernetes version of the control plane, for example "v1.31.0" or
	// "1.31". It is empty if the manifest has none.
	ControlPlaneVersion string `json:"controlPlaneVersion,omitempty"`
	Region              string `json:"region,omitempty"`
	Paused              bool   `json:"paused,omitempty"`
	// Topology is true if the Cluster uses a ClusterClass. weir does not expand a ClusterClass, so it deletes nothing
	// of the cluster.
	Topology bool              `json:"topology,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	// Endpoint is spec.controlPlaneEndpoint as host or host:port.
	Endpoint string `json:"endpoint,omitempty"`
	// ServiceCIDR is the first service CIDR block, or empty.
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// SSHKeyName is the control plane's SSH key for remote access to nodegroups.
	SSHKeyName string  `json:"sshKeyName,omitempty"`
	Network    Network `json:"network"`
	// RoleARN is the role of the cluster's AWSClusterRoleIdentity, or empty.
	RoleARN string `json:"roleARN,omitempty"`
}

// Network is spec.network of AWSCluster or AWSManagedControlPlane.
type Network struct {
	VPCID   string   `json:"vpcID,omitempty"`
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups has securityGroupOverrides by CAPA role ("node", "lb", "node-eks-additional").
	SecurityGroups map[string]string `json:"securityGroups,omitempty"`
}

// Subnet is a subnet in the cluster's manifests.
type Subnet struct {
	ID     string `json:"id"`
	Zone   string `json:"zone,omitempty"`
	Public bool   `json:"public,omitempty"`
}

// PoolKind is the kind of a pool's infrastructure object.
type PoolKind string

// The pool kinds.
const (
	GroupPool     PoolKind = "AWSMachinePool"
	NodegroupPool PoolKind = "AWSManagedMachinePool"
)

// Pool is one MachinePool with its infrastructure object.
type Pool struct {
	Key  Key      `json:"key"`
	Kind PoolKind `json:"kind"`
	// MachinePool and Infrastructure are the objects that the intent is derived from.
	MachinePool    ObjectRef `json:"machinePool"`
	Infrastructure ObjectRef `json:"infrastructure"`
	// Bootstrap is the bootstrap configuration or Secret. It is zero if the pool has neither.
	Bootstrap ObjectRef `json:"bootstrap,omitzero"`
	// Options is the PoolOptions of the pool, or zero.
	Options ObjectRef `json:"options,omitzero"`
	// ClusterKey is the key of the pool's Cluster.
	ClusterKey Key `json:"cluster"`

	Paused bool `json:"paused,omitempty"`
	// PruneDisabled is weir.dev/prune: disabled.
	PruneDisabled bool `json:"pruneDisabled,omitempty"`
	// Drain is weir.dev/delete: drain. weir scales a group that was removed from Git to zero before it
	// deletes the group, so that the lifecycle hooks for termination run. Otherwise weir deletes the group
	// together with its instances.
	Drain bool `json:"drain,omitempty"`
	// KeepVersions is weir.dev/keep-versions: the number of launch template versions to keep in addition to
	// the desired one. 0 means the value in weir's configuration.
	KeepVersions int32 `json:"keepVersions,omitempty"`
	// FollowImages is weir.dev/ami-policy: follow. weir rolls out a newly published image. Otherwise the
	// image stays until the manifests change.
	FollowImages bool `json:"followImages,omitempty"`
	// AllowReplace is weir.dev/replace: allowed. If AWS cannot change something in place, weir creates a
	// replacement next to the old one, and then deletes the old one.
	AllowReplace bool `json:"allowReplace,omitempty"`
	// Adopt is weir.dev/adopt: "true". weir adopts existing resources that have the pool's names, if the
	// target's configuration allows it.
	Adopt bool `json:"adopt,omitempty"`

	Replicas Number `json:"replicas"`
	// ReplicasManagedExternally is cluster.x-k8s.io/replicas-managed-by.
	ReplicasManagedExternally bool `json:"replicasManagedExternally,omitempty"`
	// Version is the Kubernetes version, for example "v1.31.2", or empty.
	Version string `json:"version,omitempty"`
	// MinReadySeconds is how many seconds a node must be ready before it counts as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// LaunchConfig is set if the launch template is shared. LaunchTemplate is then equal in all pools with
	// the same LaunchConfig.Key.
	LaunchConfig *LaunchConfig `json:"launchConfig,omitempty"`
	// LaunchTemplate is nil for a managed pool without a template, and for a pool with a ForeignTemplate.
	LaunchTemplate  *LaunchTemplate  `json:"launchTemplate,omitempty"`
	ForeignTemplate *ForeignTemplate `json:"foreignTemplate,omitempty"`
	// ForeignOverrides replace ForeignTemplate for the instance types in their lookups. These types are in
	// the group's policy.
	ForeignOverrides []ForeignTemplate `json:"foreignOverrides,omitempty"`
	// ControlPlane looks up the EKS cluster that a group's machines join. It is zero for other clusters, and
	// for a nodegroup, which has its own lookup.
	ControlPlane Lookup `json:"controlPlane,omitzero"`
	// Exactly one of Group and Nodegroup is set, depending on Kind.
	Group     *Group     `json:"group,omitempty"`
	Nodegroup *Nodegroup `json:"nodegroup,omitempty"`

	// FailureDomains is true if the zones of the pool's subnets come from failureDomains of its MachinePool.
	FailureDomains bool `json:"-"`

	// Remembered is weir.dev/image-family: the family of the image that the manifests pin. It lets weir
	// propose newer images of the family. It has no effect on AWS.
	Remembered string `json:"-"`
	// Family looks up the newest image of that family. It is zero if no image is pinned, if the family is
	// unknown, or if EKS chooses the image (see NodegroupRelease).
	Family Lookup `json:"-"`

	// Labels has the labels of the pool's MachinePool, for the selectors of FleetRollouts.
	Labels map[string]string `json:"-"`

	// Blocked lists the reasons why weir cannot plan a pool with valid manifests, for example a missing join
	// token. Validation shows them as warnings, a plan as errors.
	Blocked diag.List `json:"blocked,omitempty"`
}

// TypeField returns the object and field that name an instance type of the pool. The lookup of its image uses
// this type.
func (p *Pool) TypeField(name string) (ObjectRef, Path) {
	if g := p.Group; g != nil && g.MixedInstancesPolicy != nil && (p.LaunchTemplate == nil || p.LaunchTemplate.Data.InstanceType != name) {
		for i, o := range g.MixedInstancesPolicy.Overrides {
			at := Path{"mixedInstancesPolicy", "overrides", Index(i), "instanceType"}
			switch {
			case o.InstanceType != name:
			case g.TypesOfOptions:
				return p.Options, Path{"spec", "autoScalingGroup"}.Join(at...)
			default:
				return p.Infrastructure, Path{"spec"}.Join(at...)
			}
		}
	}
	at := Path{"spec", "awsLaunchTemplate", "instanceType"}
	if c := p.LaunchConfig; c != nil {
		if field, ok := c.Field(at); ok {
			return c.Source, field
		}
	}
	return p.Infrastructure, at
}

// Lookups returns all lookups of the pool in a fixed order. A lookup that several fields need occurs several
// times.
func (p *Pool) Lookups() iter.Seq[Lookup] {
	return func(yield func(Lookup) bool) {
		more := true
		ask := func(l *Lookup) {
			if more && l.Kind != "" {
				more = yield(*l)
			}
		}
		all := func(list []Lookup) {
			for i := range list {
				ask(&list[i])
			}
		}
		groups := func(ids []string) {
			for _, id := range ids {
				ask(&Lookup{Kind: SecurityGroupByID, Name: id})
			}
		}
		if f := p.ForeignTemplate; f != nil {
			ask(&f.Lookup)
		}
		for i := range p.ForeignOverrides {
			ask(&p.ForeignOverrides[i].Lookup)
		}
		if t := p.LaunchTemplate; t != nil {
			ask(&t.Image)
			ask(&t.UserData.Cluster)
			all(t.SecurityGroups)
			groups(t.Data.SecurityGroupIDs)
			for i := range t.Data.NetworkInterfaces {
				groups(t.Data.NetworkInterfaces[i].Groups)
			}
		}
		if g := p.Group; g != nil {
			ask(&g.Subnets)
		}
		ask(&p.ControlPlane)
		if n := p.Nodegroup; n != nil {
			ask(&n.Cluster)
			ask(&n.Role)
			all(n.RoleChecks)
			ask(&n.Subnets)
			all(n.RemoteAccessGroups)
		}
	}
}
