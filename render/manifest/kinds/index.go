package kinds

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// Index has the decoded objects of one render.
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
	UnreadOptions         []string // the namespaces of PoolOptions in an unknown version
	Secrets               map[intent.Key]Object
	Ignored               []intent.Ignored
	// Misread are the objects that weir would read if their kind or apiVersion were
	// spelled correctly.
	Misread []Misread
}

// Table has the objects of one kind by namespace and name.
type Table[S any] map[intent.Key]*Decoded[S]

// Sorted returns the objects, sorted by key.
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

// NewIndex decodes objects and reports their faults.
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
	misspelled := spelling{known: known, found: map[[2]string]kind{}}
	var read []Object
	var of []string
	for _, o := range objects {
		r := Reporter{Ref: o.Ref, To: to}
		k, ok := findKind(known, o.Ref)
		if !ok {
			if meant, is := misspelled.find(o.Ref); is {
				x.misread(meant, o, r)
			} else {
				counts[[2]string{o.Ref.APIVersion, o.Ref.Kind}]++
			}
			continue
		}
		id := [4]string{o.Ref.Group(), o.Ref.Kind, o.Ref.Namespace, o.Ref.Name}
		if first, twice := seen[id]; twice && k.use != onDemand {
			to.Add(Fault{Code: "duplicate-object", Summary: o.Ref.String() + " is rendered twice", Ref: o.Ref, Path: path("metadata", "name"),
				Related: []RelatedField{{Ref: first, Path: path("metadata", "name"), Message: "the other one"}}})
			continue
		}
		seen[id] = o.Ref
		if x.accepts(k, o.Ref, r) {
			read, of = append(read, o), append(of, k.name)
		} else {
			x.addMisread(k, o)
		}
	}
	x.addAll(read, of)
	for k, n := range counts {
		x.Ignored = append(x.Ignored, intent.Ignored{APIVersion: k[0], Kind: k[1], Count: n})
	}
	slices.SortFunc(x.Ignored, func(a, b intent.Ignored) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return x
}

// accepts reports whether an object is read. It adds a fault for kinds and versions that weir does not read.
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

// aside is the minimum number of objects for a goroutine. To decode fewer takes less time than to start one.
const aside = 64

// addAll decodes objects of the given kinds in parallel, and adds them to their tables in order.
func (x *Index) addAll(objects []Object, of []string) {
	into := make([]func(), len(objects))
	part := max(aside, (len(objects)-1)/runtime.GOMAXPROCS(0)+1)
	var all sync.WaitGroup
	for from := 0; from < len(objects); from += part {
		all.Go(func() {
			for i := from; i < min(from+part, len(objects)); i++ {
				into[i] = x.decode(of[i], objects[i])
			}
		})
	}
	all.Wait()
	for _, put := range into {
		put()
	}
}

// decode decodes an object of a known kind. The returned function adds the object to its table and its
// faults to the index; it changes the index only when it is called. For other kinds it does nothing.
func (x *Index) decode(kind string, o Object) (put func()) {
	switch kind {
	case "MachinePool":
		pool, found := decodeObject[MachinePoolSpec](o)
		return func() {
			x.MachinePools, x.Faults.List = append(x.MachinePools, pool), append(x.Faults.List, found...)
		}
	case "Cluster":
		return in(x, x.Clusters, KeyOf(o.Ref), o)
	case "AWSMachinePool":
		return in(x, x.Pools, KeyOf(o.Ref), o)
	case "AWSManagedMachinePool":
		return in(x, x.ManagedPools, KeyOf(o.Ref), o)
	case "AWSLaunchConfig":
		return in(x, x.LaunchConfigs, KeyOf(o.Ref), o)
	case "AWSLaunchConfigTemplate":
		return in(x, x.LaunchConfigTemplates, KeyOf(o.Ref), o)
	case "AWSCluster":
		return in(x, x.AWSClusters, KeyOf(o.Ref), o)
	case "AWSManagedCluster":
		return in(x, x.ManagedClusters, KeyOf(o.Ref), o)
	case "AWSManagedControlPlane":
		return in(x, x.ControlPlanes, KeyOf(o.Ref), o)
	case "AWSClusterRoleIdentity":
		// Identities are cluster-scoped, so the namespace is ignored. A namespace transformer may have set
		// one.
		return in(x, x.Roles, intent.Key{Name: o.Ref.Name}, o)
	case "AWSClusterControllerIdentity":
		return in(x, x.Controllers, intent.Key{Name: o.Ref.Name}, o)
	case "KubeadmConfig":
		return in(x, x.KubeadmConfigs, KeyOf(o.Ref), o)
	case "EKSConfig":
		return in(x, x.EKSConfigs, KeyOf(o.Ref), o)
	case "NodeadmConfig":
		return in(x, x.NodeadmConfigs, KeyOf(o.Ref), o)
	case "FleetRollout":
		return in(x, x.FleetRollouts, KeyOf(o.Ref), o)
	case "PoolOptions":
		return in(x, x.PoolOptions, KeyOf(o.Ref), o)
	case "Secret":
		return func() { x.Secrets[KeyOf(o.Ref)] = o }
	}
	return func() {}
}

// in decodes an object. The returned function adds the object to a table, and its faults to the index.
func in[S any](x *Index, t Table[S], key intent.Key, o Object) (put func()) {
	out, found := decodeObject[S](o)
	return func() { t[key], x.Faults.List = out, append(x.Faults.List, found...) }
}

// decodeObject decodes an object and returns its faults.
func decodeObject[S any](o Object) (*Decoded[S], []Fault) {
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
	return out, found.List
}
