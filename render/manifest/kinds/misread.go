package kinds

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
)

// Misread is an object whose kind or apiVersion is a likely misspelling of one that weir reads.
type Misread struct {
	Object
	// Meant is the correct name of the kind.
	Meant string
}

// IsPool reports whether the object is a MachinePool or an infrastructure pool.
func (m *Misread) IsPool() bool { return m.Meant == kindMachinePool || m.IsInfrastructure() }

// IsInfrastructure reports whether the object is an infrastructure pool.
func (m *Misread) IsInfrastructure() bool { return IsPoolKind(m.Meant) }

// IsPoolKind reports whether a kind is one of the infrastructure pools that weir reads.
func IsPoolKind(kind string) bool {
	return kind == string(intent.GroupPool) || kind == string(intent.NodegroupPool)
}

const kindMachinePool = "MachinePool"

// mostEdits bounds the number of letters by which a misspelled kind or group may differ from the correct one.
const mostEdits = 2

// mostGroupEdits is the same bound for the group of a kind whose name only Cluster API and CAPA use.
const mostGroupEdits = 4

// NearPoolKind returns the infrastructure pool kind that a misspelled kind resembles.
func NearPoolKind(kind string) (string, bool) {
	for _, k := range []intent.PoolKind{intent.GroupPool, intent.NodegroupPool} {
		if kind != string(k) && similar(kind, string(k)) {
			return string(k), true
		}
	}
	return "", false
}

func similar(a, b string) bool {
	return nearest.Distance(strings.ToLower(a), strings.ToLower(b), mostEdits+1) <= mostEdits
}

// spelling finds the kinds that misspelled names resemble.
type spelling struct {
	known []kind
	// found caches earlier results by apiVersion and kind. A kind without a name means that none was found.
	found map[[2]string]kind
}

// find returns the kind that an object's kind resembles. ok is false if it resembles no kind that weir reads.
func (s spelling) find(ref intent.ObjectRef) (kind, bool) {
	id := [2]string{ref.APIVersion, ref.Kind}
	k, known := s.found[id]
	if !known {
		k = s.match(ref.Group(), ref.Kind)
		s.found[id] = k
	}
	return k, k.name != ""
}

// match returns the known kind that a group and a kind most likely mean, or the zero kind. Kinds with
// exactly this name have precedence over similar ones.
func (s spelling) match(group, name string) kind {
	for _, exact := range []bool{true, false} {
		for _, k := range s.known {
			if k.use != read || exact != (k.name == name) {
				continue
			}
			switch {
			case exact && inFamily(group):
				return k // another group of Cluster API
			case exact && group == "" && name != "Cluster":
				return k // the group is missing; not for Cluster, which other projects have too
			case exact && name != "Cluster" && nearest.Distance(group, k.group, mostGroupEdits+1) <= mostGroupEdits:
				return k
			case (exact || similar(name, k.name)) && similar(group, k.group):
				return k
			}
		}
	}
	return kind{}
}

// inFamily reports whether a group is a group of Cluster API.
func inFamily(group string) bool {
	return group == groupCluster || strings.HasSuffix(group, "."+groupCluster)
}

// misread reports and records an object whose kind or apiVersion is misspelled.
func (x *Index) misread(meant kind, o Object, r Reporter) {
	at, written, want := path("kind"), o.Ref.Kind, meant.name
	if o.Ref.Kind == meant.name {
		version := Version(o.Ref.APIVersion)
		if !slices.Contains(meant.versions, version) {
			version = meant.versions[len(meant.versions)-1]
		}
		at, written, want = path("apiVersion"), o.Ref.APIVersion+" "+o.Ref.Kind, meant.group+"/"+version+" "+meant.name
	}
	r.Error(at, "misspelled-kind", "weir reads no "+written+"; "+want+" is near", "write "+want+" if that is meant, or take the object out of what the target renders")
	x.addMisread(meant, o)
}

// addMisread records an object that weir would read if its kind, group or version were right.
func (x *Index) addMisread(meant kind, o Object) {
	if meant.use != read {
		return
	}
	x.Misread = append(x.Misread, Misread{o, meant.name})
	if meant.name == "PoolOptions" {
		x.UnreadOptions = append(x.UnreadOptions, o.Ref.Namespace)
	}
}

// clusterKinds are the kinds that set the names, tags and networks of all pools of a cluster.
var clusterKinds = map[string]bool{
	"Cluster": true, "AWSCluster": true, "AWSManagedCluster": true, "AWSManagedControlPlane": true, "AWSClusterRoleIdentity": true, "AWSClusterControllerIdentity": true,
}

// ClusterMisread returns a misread object that may be part of the cluster of pools in the namespace, or nil.
// Identities have no namespace.
func (x *Index) ClusterMisread(namespace string) *Misread {
	for i := range x.Misread {
		if m := &x.Misread[i]; clusterKinds[m.Meant] && (m.Ref.Namespace == namespace || m.Ref.Namespace == "" || strings.HasSuffix(m.Meant, "Identity")) {
			return m
		}
	}
	return nil
}

// Text returns the text of a field of an object that was not decoded, or "".
func (o Object) Text(p ...string) string {
	n := o.At(p...)
	if n == nil || n.Value == "" {
		return ""
	}
	return n.Value
}
