// Package intent holds what Git says AWS should hold, after rendering: total
// values with every default filled in, and a typed Lookup wherever only AWS can
// answer. The values are immutable once handed on, comparable in tests and
// printable. Names are AWS's and Cluster API's own.
package intent

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
)

// Set is everything one render of a target wants.
type Set struct {
	// Pools are sorted by Key.
	Pools []Pool
	// Clusters are sorted by Key. A pool's cluster may be missing here: its
	// manifest can live in another directory.
	Clusters []Cluster
	// Rollouts are sorted by Key.
	Rollouts []FleetRollout `json:",omitempty"`
	// Ignored counts the objects of kinds that are not weir's.
	Ignored []Ignored
	// Unplanned lists the manifests that are in no pool above, sorted by Key.
	Unplanned []Unplanned `json:",omitempty"`
}

// Ignored is a kind that weir passes over, and how many objects of it there were.
type Ignored struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
}

// Key identifies a pool or cluster inside a target: of a pool it is its
// MachinePool's namespace and name.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String prints namespace/name, the value of the tag weir.dev/pool.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

func (k Key) compare(o Key) int {
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Sort puts pools and clusters in order of their keys.
func (s *Set) Sort() {
	slices.SortStableFunc(s.Pools, func(a, b Pool) int { return a.Key.compare(b.Key) })
	slices.SortStableFunc(s.Unplanned, func(a, b Unplanned) int { return a.Key.compare(b.Key) })
	slices.SortStableFunc(s.Clusters, func(a, b Cluster) int { return a.Key.compare(b.Key) })
}

// Cluster returns the cluster with key k, and whether the set holds it.
func (s *Set) Cluster(k Key) (Cluster, bool) {
	i, found := slices.BinarySearchFunc(s.Clusters, k, func(c Cluster, k Key) int { return c.Key.compare(k) })
	if !found {
		return Cluster{}, false
	}
	return s.Clusters[i], true
}

// Pool returns the pool whose key prints so, nil where the set has none.
func (s *Set) Pool(name string) *Pool {
	var k Key
	k.Namespace, k.Name, _ = strings.Cut(name, "/")
	i, found := slices.BinarySearchFunc(s.Pools, k, func(p Pool, k Key) int { return p.Key.compare(k) })
	if !found {
		return nil
	}
	return &s.Pools[i]
}

// Number is a number that the manifest may leave to weir. Value is always usable. An unwritten one
// is used when something is created, and is not compared with AWS afterwards.
type Number struct {
	Value   int32 `json:"value"`
	Written bool  `json:"written"`
}

// Cluster holds what pools need of their cluster's objects.
type Cluster struct {
	Key Key `json:"key"`
	// TagName is the <cluster> of tag keys: the Cluster's name, or the EKS
	// cluster's name where the control plane is managed.
	TagName string `json:"tagName"`
	// EKSName is the EKS cluster's name, empty for a self-managed cluster.
	EKSName string `json:"eksName,omitempty"`
	// ControlPlaneName is the AWSManagedControlPlane's metadata.name.
	ControlPlaneName string `json:"controlPlaneName,omitempty"`
	// ControlPlaneVersion is the Kubernetes version that Git wants for the
	// control plane, "v1.31.0" or "1.31"; empty where not written.
	ControlPlaneVersion string `json:"controlPlaneVersion,omitempty"`
	Region              string `json:"region,omitempty"`
	Paused              bool   `json:"paused,omitempty"`
	// Topology says that the Cluster uses a ClusterClass, which weir does not
	// expand: nothing of the cluster is deleted.
	Topology bool              `json:"topology,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	// Endpoint is spec.controlPlaneEndpoint as host or host:port.
	Endpoint string `json:"endpoint,omitempty"`
	// ServiceCIDR is the first service CIDR block, empty where not written.
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// SSHKeyName is the control plane's key for remote access to nodegroups.
	SSHKeyName string  `json:"sshKeyName,omitempty"`
	Network    Network `json:"network"`
	// RoleARN is the role of an AWSClusterRoleIdentity, empty without one.
	RoleARN string `json:"roleARN,omitempty"`
}

// Network is spec.network of AWSCluster or AWSManagedControlPlane.
type Network struct {
	VPCID   string   `json:"vpcID,omitempty"`
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups holds securityGroupOverrides by CAPA role ("node", "lb",
	// "node-eks-additional").
	SecurityGroups map[string]string `json:"securityGroups,omitempty"`
}

// Subnet is one subnet that the cluster's manifests name.
type Subnet struct {
	ID     string `json:"id"`
	Zone   string `json:"zone,omitempty"`
	Public bool   `json:"public,omitempty"`
}

// PoolKind is one of the two infrastructure kinds.
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
	// MachinePool and Infrastructure are the objects whose fields the intent's
	// fields come from.
	MachinePool    ObjectRef `json:"machinePool"`
	Infrastructure ObjectRef `json:"infrastructure"`
	// Bootstrap is the bootstrap configuration or secret, zero without one.
	Bootstrap ObjectRef `json:"bootstrap,omitzero"`
	// Options is the PoolOptions of the pool, zero without one.
	Options ObjectRef `json:"options,omitzero"`
	// ClusterKey names the Cluster.
	ClusterKey Key `json:"cluster"`

	Paused bool `json:"paused,omitempty"`
	// PruneDisabled is weir.dev/prune: disabled.
	PruneDisabled bool `json:"pruneDisabled,omitempty"`
	// Drain is weir.dev/delete: drain: a group that Git drops is scaled to zero
	// before it is deleted, so that its terminating lifecycle hooks run. Otherwise
	// it is deleted with its instances.
	Drain bool `json:"drain,omitempty"`
	// KeepVersions is weir.dev/keep-versions: the number of versions of the launch template that
	// are kept in addition to the wanted one; 0 leaves it to the configuration.
	KeepVersions int32 `json:"keepVersions,omitempty"`
	// FollowImages is weir.dev/ami-policy: follow: a newly published image is
	// rolled out. Otherwise the image stays until the manifests change.
	FollowImages bool `json:"followImages,omitempty"`
	// AllowReplace is weir.dev/replace: allowed: if AWS cannot change something in place, weir
	// creates it again next to the old one, and deletes the old one.
	AllowReplace bool `json:"allowReplace,omitempty"`
	// Adopt is weir.dev/adopt: "true": what the pool's names belong to already is
	// taken over, where the target's configuration allows it.
	Adopt bool `json:"adopt,omitempty"`

	Replicas Number `json:"replicas"`
	// ReplicasManagedExternally is cluster.x-k8s.io/replicas-managed-by.
	ReplicasManagedExternally bool `json:"replicasManagedExternally,omitempty"`
	// Version is the Kubernetes version, such as "v1.31.2"; empty if unwritten.
	Version string `json:"version,omitempty"`
	// MinReadySeconds is the time that a node must be ready to count as available.
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// LaunchConfig is set where the launch template is shared: LaunchTemplate is
	// then equal in all pools with the same key.
	LaunchConfig *LaunchConfig `json:"launchConfig,omitempty"`
	// LaunchTemplate is nil for a managed pool without a template, and for a pool
	// that brings its own, which ForeignTemplate then names.
	LaunchTemplate  *LaunchTemplate  `json:"launchTemplate,omitempty"`
	ForeignTemplate *ForeignTemplate `json:"foreignTemplate,omitempty"`
	// ForeignOverrides take the place of ForeignTemplate for the instance types
	// that their lookups list, which are among those of the group's policy.
	ForeignOverrides []ForeignTemplate `json:"foreignOverrides,omitempty"`
	// ControlPlane looks up the EKS cluster that a group's machines join; zero for a nodegroup,
	// which has its own lookup, and for other clusters.
	ControlPlane Lookup `json:"controlPlane,omitzero"`
	// Exactly one of Group and Nodegroup is set, as Kind says.
	Group     *Group     `json:"group,omitempty"`
	Nodegroup *Nodegroup `json:"nodegroup,omitempty"`

	// FailureDomains says that the zones of the pool's subnets are written in its
	// MachinePool's failureDomains.
	FailureDomains bool `json:"-"`

	// Remembered is weir.dev/image-family: which family the image is of that is pinned in
	// the manifests, so that newer ones of it are proposed. It decides nothing in AWS.
	Remembered string `json:"-"`
	// Family looks up the newest image of that family; zero if none is pinned, the family is not
	// remembered, or EKS chooses the image (see NewestRelease).
	Family Lookup `json:"-"`

	// Labels holds the labels of its MachinePool, which FleetRollouts select by.
	Labels map[string]string `json:"-"`

	// Blocked says why the pool cannot be planned although its manifests are
	// valid, a missing join token for example. Validation shows these as
	// warnings, a plan as errors.
	Blocked diag.List `json:"blocked,omitempty"`
}

// TypeField is the object and the field that name an instance type of the pool, which its
// image is looked up for.
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

// Lookups returns all lookups of the pool that only AWS can answer, in a fixed order. A lookup with
// two reasons occurs twice.
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
