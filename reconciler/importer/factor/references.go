package factor

import (
	"slices"
	"strings"
)

// reference is a field in which an object contains the name of another object of its pool, or its own name.
// kustomize updates the references in references/namereference.yaml when a pool gets its name.
type reference struct {
	// kind and group identify the named object, of and ofGroup the object with the reference, at path.
	kind, group, of, ofGroup string
	path                     []string
	// own says that the object refers to its own name, which is optional.
	own bool
}

const (
	core           = "cluster.x-k8s.io"
	infrastructure = "infrastructure.cluster.x-k8s.io"
	bootstrap      = "bootstrap.cluster.x-k8s.io"
)

// known returns all references. References to launch templates are not included, because a pool's name is
// not theirs.
func known() (out []reference) {
	add := func(kind, group, of, ofGroup, path string) {
		out = append(out, reference{kind: kind, group: group, of: of, ofGroup: ofGroup, path: strings.Split(path, "/"), own: kind == of})
	}
	for _, kind := range []string{"AWSMachinePool", "AWSManagedMachinePool"} {
		add(kind, infrastructure, "MachinePool", core, "spec/template/spec/infrastructureRef/name")
		add(kind, infrastructure, "PoolOptions", "weir.dev", "spec/poolRef/name")
		out = append(out, reference{kind: kind, group: infrastructure, of: kind, ofGroup: infrastructure, path: []string{"metadata", "annotations", "node.k8s.aws/launch-template-name"}, own: true})
	}
	add("AWSManagedMachinePool", infrastructure, "AWSManagedMachinePool", infrastructure, "spec/eksNodegroupName")
	for _, kind := range []string{"EKSConfig", "KubeadmConfig", "NodeadmConfig"} {
		add(kind, bootstrap, "MachinePool", core, "spec/template/spec/bootstrap/configRef/name")
	}
	add("Secret", "", "MachinePool", core, "spec/template/spec/bootstrap/dataSecretName")
	return out
}

// is reports whether a role belongs to a group and kind.
func is(role, group, kind string) bool {
	version, k, _ := strings.Cut(role, joint)
	g, _, grouped := strings.Cut(version, "/")
	if !grouped {
		g = ""
	}
	return k == kind && g == group
}

func (r reference) by(role string, keys []string) bool {
	return is(role, r.ofGroup, r.of) && slices.Equal(keys, r.path)
}

// follows reports whether a value is the pool's name and refers to an object that is renamed with it.
func (p *part) follows(role string, keys []string, v any, refs []reference) bool {
	if v != p.pool.Name {
		return false
	}
	for _, r := range refs {
		if r.by(role, keys) {
			for have := range p.objects {
				if is(have, r.group, r.kind) {
					return true
				}
			}
		}
	}
	return false
}

// collectReferences decides which references kustomize updates, finds the leaves, and collects the names that no base
// may have: names of pools, and values of reference fields. Otherwise kustomize would confuse such a name
// with a base's and rename it.
func (w *writer) collectReferences(clusters []Cluster) {
	w.taken = map[string]bool{}
	values := func(r reference) (out []string, own int) {
		for _, p := range w.parts {
			for _, o := range p.pool.Objects {
				if !is(roleOf(o), r.ofGroup, r.of) {
					continue
				}
				if v, ok := at(o, r.path); ok {
					out = append(out, str(v))
					if v == p.pool.Name && p.objects[roleOf(o)] != nil {
						own++
					}
				}
			}
		}
		return out, own
	}
	for _, r := range known() {
		all, own := values(r)
		if r.own && own < 2 {
			continue // these objects have names of their own
		}
		w.refs = append(w.refs, r)
		for _, v := range all {
			w.taken[v] = true
		}
	}
	for _, p := range w.parts {
		for _, o := range p.pool.Objects {
			w.taken[nameOf(o)] = true
		}
		p.flatten(w.refs)
	}
	for i := range clusters {
		w.taken[clusters[i].Name] = true
	}
}
