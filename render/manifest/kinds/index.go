package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// Index holds the decoded objects of one render.
type Index struct {
	Faults *Faults

	MachinePools          []*Decoded[MachinePoolSpec]
	Clusters              Table[ClusterSpec]
	Pools                 Table[AWSMachinePoolSpec]
	ManagedPools          Table[AWSManagedMachinePoolSpec]
	LaunchConfigs         Table[LaunchTemplate]
	LaunchConfigTemplates Table[AWSLaunchConfigTemplateSpec]
	AWSClusters           Table[AWSClusterSpec]
	ManagedClusters       Table[AWSManagedClusterSpec]
	ControlPlanes         Table[AWSManagedControlPlaneSpec]
	Roles                 Table[AWSClusterRoleIdentitySpec]
	Controllers           Table[AWSClusterControllerIdentitySpec]
	KubeadmConfigs        Table[KubeadmConfigSpec]
	EKSConfigs            Table[EKSConfigSpec]
	NodeadmConfigs        Table[NodeadmConfigSpec]
	PoolOptions           Table[PoolOptionsSpec]
	FleetRollouts         Table[FleetRolloutSpec]
	UnreadOptions         []string // the namespaces of PoolOptions in a version that is not known
	Secrets               map[intent.Key]Object
	Ignored               []intent.Ignored
}

// Table holds the objects of one kind by namespace and name.
type Table[S any] map[intent.Key]*Decoded[S]

// Sorted returns the objects in order of their keys.
func (t Table[S]) Sorted() []*Decoded[S] {
	out := make([]*Decoded[S], 0, len(t))
	for _, o := range t {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *Decoded[S]) int {
		return cmp.Or(cmp.Compare(a.Ref().Namespace, b.Ref().Namespace), cmp.Compare(a.Ref().Name, b.Ref().Name))
	})
	return out
}

func (o *Decoded[S]) Ref() intent.ObjectRef { return o.Source.Ref }

func (o *Decoded[S]) Key() intent.Key { return KeyOf(o.Source.Ref) }

func (o *Decoded[S]) Reporter(to *Faults) Reporter { return Reporter{Ref: o.Source.Ref, To: to} }

func KeyOf(ref intent.ObjectRef) intent.Key {
	return intent.Key{Namespace: ref.Namespace, Name: ref.Name}
}

// NewIndex decodes objects and reports what is wrong with them.
func NewIndex(objects []Object, to *Faults) *Index {
	x := &Index{
		Faults: to, Clusters: Table[ClusterSpec]{}, Pools: Table[AWSMachinePoolSpec]{}, ManagedPools: Table[AWSManagedMachinePoolSpec]{},
		LaunchConfigs: Table[LaunchTemplate]{}, LaunchConfigTemplates: Table[AWSLaunchConfigTemplateSpec]{},
		AWSClusters: Table[AWSClusterSpec]{}, ManagedClusters: Table[AWSManagedClusterSpec]{}, ControlPlanes: Table[AWSManagedControlPlaneSpec]{},
		Roles: Table[AWSClusterRoleIdentitySpec]{}, Controllers: Table[AWSClusterControllerIdentitySpec]{}, KubeadmConfigs: Table[KubeadmConfigSpec]{},
		EKSConfigs: Table[EKSConfigSpec]{}, NodeadmConfigs: Table[NodeadmConfigSpec]{}, PoolOptions: Table[PoolOptionsSpec]{}, FleetRollouts: Table[FleetRolloutSpec]{}, Secrets: map[intent.Key]Object{},
	}
	known := known()
	seen := map[[4]string]intent.ObjectRef{}
	counts := map[[2]string]int{}
	for _, o := range objects {
		k, ok := findKind(known, o.Ref)
		if !ok {
			counts[[2]string{o.Ref.APIVersion, o.Ref.Kind}]++
			continue
		}
		r := Reporter{Ref: o.Ref, To: to}
		id := [4]string{o.Ref.Group(), o.Ref.Kind, o.Ref.Namespace, o.Ref.Name}
		if first, twice := seen[id]; twice && k.use != onDemand {
			to.Add(Fault{Code: "duplicate-object", Summary: o.Ref.String() + " is rendered twice", Ref: o.Ref, Path: path("metadata", "name"),
				Related: []RelatedField{{Ref: first, Path: path("metadata", "name"), Message: "the other one"}}})
			continue
		}
		seen[id] = o.Ref
		if x.accepts(k, o.Ref, r) {
			x.add(k, o)
		} else if k.name == "PoolOptions" {
			x.UnreadOptions = append(x.UnreadOptions, o.Ref.Namespace)
		}
	}
	for k, n := range counts {
		x.Ignored = append(x.Ignored, intent.Ignored{APIVersion: k[0], Kind: k[1], Count: n})
	}
	slices.SortFunc(x.Ignored, func(a, b intent.Ignored) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return x
}

// accepts reports kinds and versions that are not read.
func (x *Index) accepts(k kind, ref intent.ObjectRef, r Reporter) bool {
	switch {
	case k.use == refused:
		r.Error(path("kind"), "static-identity", "AWSClusterStaticIdentity is refused: AWS keys do not come from Git",
			"use AWSClusterRoleIdentity, or none and give weir its credentials in its environment")
		return false
	case k.use == later:
		r.Unsupported(path("kind"), "kind "+k.name, "")
		return false
	case !slices.Contains(k.versions, Version(ref.APIVersion)):
		r.Error(path("apiVersion"), "unknown-version", fmt.Sprintf("%s has no version %s that weir reads", k.name, ref.APIVersion),
			"write "+k.group+"/"+strings.Join(k.versions, " or "+k.group+"/"))
		return false
	}
	if k.group == groupExpCluster {
		r.Warn(path("apiVersion"), "deprecated-version", ref.APIVersion+" is deprecated", "write "+groupCluster+"/v1beta1")
	}
	return true
}

func (x *Index) add(k kind, o Object) {
	switch k.name {
	case "MachinePool":
		x.MachinePools = append(x.MachinePools, decodeObject[MachinePoolSpec](o, x.Faults))
	case "Cluster":
		put(x.Clusters, o, x.Faults)
	case "AWSMachinePool":
		put(x.Pools, o, x.Faults)
	case "AWSManagedMachinePool":
		put(x.ManagedPools, o, x.Faults)
	case "AWSLaunchConfig":
		put(x.LaunchConfigs, o, x.Faults)
	case "AWSLaunchConfigTemplate":
		put(x.LaunchConfigTemplates, o, x.Faults)
	case "AWSCluster":
		put(x.AWSClusters, o, x.Faults)
	case "AWSManagedCluster":
		put(x.ManagedClusters, o, x.Faults)
	case "AWSManagedControlPlane":
		put(x.ControlPlanes, o, x.Faults)
	case "AWSClusterRoleIdentity":
		// Identities are known by name alone, also where a namespace
		// transformer gave them one.
		x.Roles[intent.Key{Name: o.Ref.Name}] = decodeObject[AWSClusterRoleIdentitySpec](o, x.Faults)
	case "AWSClusterControllerIdentity":
		x.Controllers[intent.Key{Name: o.Ref.Name}] = decodeObject[AWSClusterControllerIdentitySpec](o, x.Faults)
	case "KubeadmConfig":
		put(x.KubeadmConfigs, o, x.Faults)
	case "EKSConfig":
		put(x.EKSConfigs, o, x.Faults)
	case "NodeadmConfig":
		put(x.NodeadmConfigs, o, x.Faults)
	case "FleetRollout":
		put(x.FleetRollouts, o, x.Faults)
	case "PoolOptions":
		put(x.PoolOptions, o, x.Faults)
	case "Secret":
		x.Secrets[KeyOf(o.Ref)] = o
	}
}

func put[S any](t Table[S], o Object, to *Faults) { t[KeyOf(o.Ref)] = decodeObject[S](o, to) }

// decodeObject reads one object and reports its faults.
func decodeObject[S any](o Object, to *Faults) *Decoded[S] {
	out := &Decoded[S]{Source: o}
	var found Faults
	if n := strict.Resolve(o.Node); n == nil || n.Kind != yaml.MappingNode {
		found.Add(Fault{Code: "wrong-type", Summary: "the object must be a mapping", Ref: o.Ref})
	} else {
		Decode(o, &found, out)
	}
	out.Broken = found.HasErrors()
	for _, f := range found.List {
		if f.Code != "unknown-field" {
			out.Unread = append(out.Unread, f.Path)
		}
	}
	to.List = append(to.List, found.List...)
	return out
}
