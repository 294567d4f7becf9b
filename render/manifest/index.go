package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// index holds the decoded objects of one render.
type index struct {
	faults *faults

	machinePools    []*object[MachinePoolSpec]
	clusters        table[ClusterSpec]
	pools           table[AWSMachinePoolSpec]
	managedPools    table[AWSManagedMachinePoolSpec]
	configs         table[LaunchTemplate]
	configTemplates table[AWSLaunchConfigTemplateSpec]
	awsClusters     table[AWSClusterSpec]
	managedClusters table[AWSManagedClusterSpec]
	controlPlanes   table[AWSManagedControlPlaneSpec]
	roles           table[AWSClusterRoleIdentitySpec]
	controllers     table[AWSClusterControllerIdentitySpec]
	kubeadm         table[KubeadmConfigSpec]
	eks             table[EKSConfigSpec]
	nodeadm         table[NodeadmConfigSpec]
	poolOptions     table[PoolOptionsSpec]
	unreadOptions   []string // the namespaces of PoolOptions in a version that is not known
	secrets         map[intent.Key]Object
	ignored         []intent.Ignored
}

// table holds the objects of one kind by namespace and name.
type table[S any] map[intent.Key]*object[S]

// sorted returns the objects in order of their keys.
func (t table[S]) sorted() []*object[S] {
	out := make([]*object[S], 0, len(t))
	for _, o := range t {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *object[S]) int {
		return cmp.Or(cmp.Compare(a.ref().Namespace, b.ref().Namespace), cmp.Compare(a.ref().Name, b.ref().Name))
	})
	return out
}

func (o *object[S]) ref() intent.ObjectRef { return o.source.Ref }

func (o *object[S]) key() intent.Key { return keyOf(o.source.Ref) }

func (o *object[S]) reporter(to *faults) reporter { return reporter{ref: o.source.Ref, to: to} }

func keyOf(ref intent.ObjectRef) intent.Key {
	return intent.Key{Namespace: ref.Namespace, Name: ref.Name}
}

// newIndex decodes objects and reports what is wrong with them.
func newIndex(objects []Object, to *faults) *index {
	x := &index{
		faults: to, clusters: table[ClusterSpec]{}, pools: table[AWSMachinePoolSpec]{}, managedPools: table[AWSManagedMachinePoolSpec]{},
		configs: table[LaunchTemplate]{}, configTemplates: table[AWSLaunchConfigTemplateSpec]{},
		awsClusters: table[AWSClusterSpec]{}, managedClusters: table[AWSManagedClusterSpec]{}, controlPlanes: table[AWSManagedControlPlaneSpec]{},
		roles: table[AWSClusterRoleIdentitySpec]{}, controllers: table[AWSClusterControllerIdentitySpec]{}, kubeadm: table[KubeadmConfigSpec]{},
		eks: table[EKSConfigSpec]{}, nodeadm: table[NodeadmConfigSpec]{}, poolOptions: table[PoolOptionsSpec]{}, secrets: map[intent.Key]Object{},
	}
	known := kinds()
	seen := map[[4]string]intent.ObjectRef{}
	counts := map[[2]string]int{}
	for _, o := range objects {
		k, ok := findKind(known, o.Ref)
		if !ok {
			counts[[2]string{o.Ref.APIVersion, o.Ref.Kind}]++
			continue
		}
		r := reporter{ref: o.Ref, to: to}
		id := [4]string{o.Ref.Group(), o.Ref.Kind, o.Ref.Namespace, o.Ref.Name}
		if first, twice := seen[id]; twice && k.use != onDemand {
			to.add(Fault{Code: "duplicate-object", Summary: o.Ref.String() + " is rendered twice", Ref: o.Ref, Path: path("metadata", "name"),
				Related: []RelatedField{{Ref: first, Path: path("metadata", "name"), Message: "the other one"}}})
			continue
		}
		seen[id] = o.Ref
		if x.accepts(k, o.Ref, r) {
			x.add(k, o)
		} else if k.name == "PoolOptions" {
			x.unreadOptions = append(x.unreadOptions, o.Ref.Namespace)
		}
	}
	for k, n := range counts {
		x.ignored = append(x.ignored, intent.Ignored{APIVersion: k[0], Kind: k[1], Count: n})
	}
	slices.SortFunc(x.ignored, func(a, b intent.Ignored) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return x
}

// accepts reports kinds and versions that are not read.
func (x *index) accepts(k kind, ref intent.ObjectRef, r reporter) bool {
	switch {
	case k.use == refused:
		r.error(path("kind"), "static-identity", "AWSClusterStaticIdentity is refused: AWS keys do not come from Git",
			"use AWSClusterRoleIdentity, or none and give weir its credentials in its environment")
		return false
	case k.use == later:
		r.unsupported(path("kind"), "kind "+k.name, "")
		return false
	case !slices.Contains(k.versions, version(ref.APIVersion)):
		r.error(path("apiVersion"), "unknown-version", fmt.Sprintf("%s has no version %s that weir reads", k.name, ref.APIVersion),
			"write "+k.group+"/"+strings.Join(k.versions, " or "+k.group+"/"))
		return false
	}
	if k.group == groupExpCluster {
		r.warn(path("apiVersion"), "deprecated-version", ref.APIVersion+" is deprecated", "write "+groupCluster+"/v1beta1")
	}
	return true
}

func (x *index) add(k kind, o Object) {
	switch k.name {
	case "MachinePool":
		x.machinePools = append(x.machinePools, decodeObject[MachinePoolSpec](o, x.faults))
	case "Cluster":
		put(x.clusters, o, x.faults)
	case "AWSMachinePool":
		put(x.pools, o, x.faults)
	case "AWSManagedMachinePool":
		put(x.managedPools, o, x.faults)
	case "AWSLaunchConfig":
		put(x.configs, o, x.faults)
	case "AWSLaunchConfigTemplate":
		put(x.configTemplates, o, x.faults)
	case "AWSCluster":
		put(x.awsClusters, o, x.faults)
	case "AWSManagedCluster":
		put(x.managedClusters, o, x.faults)
	case "AWSManagedControlPlane":
		put(x.controlPlanes, o, x.faults)
	case "AWSClusterRoleIdentity":
		// Identities are known by name alone, also where a namespace
		// transformer gave them one.
		x.roles[intent.Key{Name: o.Ref.Name}] = decodeObject[AWSClusterRoleIdentitySpec](o, x.faults)
	case "AWSClusterControllerIdentity":
		x.controllers[intent.Key{Name: o.Ref.Name}] = decodeObject[AWSClusterControllerIdentitySpec](o, x.faults)
	case "KubeadmConfig":
		put(x.kubeadm, o, x.faults)
	case "EKSConfig":
		put(x.eks, o, x.faults)
	case "NodeadmConfig":
		put(x.nodeadm, o, x.faults)
	case "PoolOptions":
		put(x.poolOptions, o, x.faults)
	case "Secret":
		x.secrets[keyOf(o.Ref)] = o
	}
}

func put[S any](t table[S], o Object, to *faults) { t[keyOf(o.Ref)] = decodeObject[S](o, to) }

// decodeObject reads one object and reports its faults.
func decodeObject[S any](o Object, to *faults) *object[S] {
	out := &object[S]{source: o}
	var found faults
	if n := resolve(o.Node); n == nil || n.Kind != yaml.MappingNode {
		found.add(Fault{Code: "wrong-type", Summary: "the object must be a mapping", Ref: o.Ref})
	} else {
		decode(o, &found, out)
	}
	out.broken = found.hasErrors()
	for _, f := range found.list {
		if f.Code != "unknown-field" {
			out.unread = append(out.unread, f.Path)
		}
	}
	to.list = append(to.list, found.list...)
	return out
}
