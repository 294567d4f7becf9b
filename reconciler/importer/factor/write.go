package factor

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writer writes the files of a repository.
type writer struct {
	parts  []*part
	shapes []*shape
	refs   []reference
	taken  map[string]bool
	// common contains the values that all pools of a cluster have, by cluster.
	common map[string][]leaf
	out    Repository
}

// findPatches finds the values for the clusters' kustomizations: values that all pools of a cluster share
// and that differ from their bases. A base then leaves out a value that all its users get in this way.
func (w *writer) findPatches() {
	tallies := w.tallies()
	patched := map[string]bool{} // paths for which a patch of some cluster saves lines
	differs := map[string]bool{} // paths for which a base of a cluster's pools has another value
	for _, t := range tallies {
		for path, n := range t.need {
			differs[path] = true
			if n >= 2 && t.shared(path) {
				patched[path] = true
			}
		}
	}
	w.common = map[string][]leaf{}
	for c, t := range tallies {
		for _, path := range slices.Sorted(maps.Keys(patched)) {
			if t.based && differs[path] && t.shared(path) {
				w.common[c] = append(w.common[c], t.first[path])
			}
		}
	}
	for _, s := range w.shapes {
		s.base = slices.DeleteFunc(s.base, func(l leaf) bool {
			return !slices.ContainsFunc(s.parts, func(p *part) bool { return !w.inCommon(p.pool.Cluster, l.path) })
		})
	}
}

// tally counts the values of a cluster's pools.
type tally struct {
	// first has the first pool's value for each path, count the number of pools with the same value, and
	// need the number of those whose base has another value.
	first       map[string]leaf
	count, need map[string]int
	// roles counts the objects of each role. based says that some pool has a base.
	roles map[string]int
	based bool
}

// shared reports whether all objects to which a patch of the path applies have the same value.
func (t *tally) shared(path string) bool {
	l, ok := t.first[path]
	return ok && l.value != any(follower{}) && t.count[path] == t.roles[l.role]
}

// tallies returns the counts by cluster.
func (w *writer) tallies() map[string]*tally {
	bases := map[*shape]map[string]string{}
	for _, s := range w.shapes {
		bases[s] = map[string]string{}
		for _, l := range s.base {
			bases[s][l.path] = l.text
		}
	}
	out := map[string]*tally{}
	for _, p := range w.parts {
		t := out[p.pool.Cluster]
		if t == nil {
			t = &tally{first: map[string]leaf{}, count: map[string]int{}, need: map[string]int{}, roles: map[string]int{}}
			out[p.pool.Cluster] = t
		}
		t.based = t.based || p.shape != nil
		t.addRoles(p)
		for _, l := range p.leaves {
			if first, ok := t.first[l.path]; !ok {
				t.first[l.path] = l
			} else if first.text != l.text {
				continue
			}
			t.count[l.path]++
			if p.shape != nil && bases[p.shape][l.path] != l.text {
				t.need[l.path]++
			}
		}
	}
	return out
}

// addRoles counts the objects of a pool. A patch for a role applies to each of them.
func (t *tally) addRoles(p *part) {
	for role := range p.objects {
		t.roles[role]++
	}
	for _, o := range p.beside {
		t.roles[roleOf(o)]++
	}
	if p.objects == nil {
		for _, o := range p.pool.Objects {
			t.roles[roleOf(o)]++
		}
	}
}

func (w *writer) inCommon(cluster, path string) bool {
	_, ok := slices.BinarySearchFunc(w.common[cluster], path, func(l leaf, path string) int { return strings.Compare(l.path, path) })
	return ok
}

// writeReferences writes the references that kustomize updates.
func (w *writer) writeReferences() {
	if len(w.shapes) == 0 {
		return
	}
	type target struct{ kind, group string }
	roles := map[string]bool{}
	for _, s := range w.shapes {
		for role := range s.parts[0].objects {
			roles[role] = true
		}
	}
	has := func(group, kind string) bool {
		for role := range roles {
			if is(role, group, kind) {
				return true
			}
		}
		return false
	}
	specs := map[target][]any{}
	var order []target
	for _, r := range w.refs {
		if !has(r.group, r.kind) || !has(r.ofGroup, r.of) {
			continue
		}
		t := target{r.kind, r.group}
		if specs[t] == nil {
			order = append(order, t)
		}
		keys := slices.Clone(r.path)
		for i := range keys {
			keys[i] = strings.ReplaceAll(keys[i], "/", `\/`)
		}
		specs[t] = append(specs[t], map[string]any{"kind": r.of, "group": r.ofGroup, "path": strings.Join(keys, "/")})
	}
	var list []any
	for _, t := range order {
		entry := map[string]any{"kind": t.kind, "fieldSpecs": specs[t]}
		if t.group != "" {
			entry["group"] = t.group
		}
		list = append(list, entry)
	}
	w.file("references/namereference.yaml", "# Where objects say the names of others, or their own: kustomize changes those when a\n# pool gets its name.\n", document(map[string]any{"nameReference": list}))
	w.file("references/kustomization.yaml", "", document(kustomization("configurations", inline("namereference.yaml"))))
}

func kustomization(pairs ...any) map[string]any {
	out := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// base writes the base of a shape.
func (w *writer) base(s *shape) {
	names := []string{}
	for _, p := range s.parts {
		names = append(names, p.pool.Name)
	}
	w.out.Bases = append(w.out.Bases, Base{s.name, names})
	dir := path.Join("bases", s.name)
	var docs []*yaml.Node
	for _, role := range s.parts[0].roles() {
		docs = append(docs, document(s.object(role)))
	}
	w.file(path.Join(dir, "kustomization.yaml"), "", document(kustomization("resources", inline("pool.yaml"))))
	w.file(path.Join(dir, "pool.yaml"), "# One pool, as most of those have it that use this base. What a pool has otherwise is in\n# its own directory, and what its cluster decides in the overlay.\n", docs...)
}

// roles returns the roles of a pool's objects, in the pool's order.
func (p *part) roles() (out []string) {
	for _, o := range p.pool.Objects {
		if role := roleOf(o); p.objects[role] != nil && !slices.Contains(out, role) {
			out = append(out, role)
		}
	}
	return out
}

// object returns an object of the base.
func (s *shape) object(role string) Object {
	var own []leaf
	for _, l := range s.base {
		if l.role == role {
			if l.value == any(follower{}) {
				l.value = s.called
			}
			own = append(own, l)
		}
	}
	out := grow(own)
	version, kind, _ := strings.Cut(role, joint)
	out["apiVersion"], out["kind"] = version, kind
	meta, _ := out["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		out["metadata"] = meta
	}
	meta["name"] = s.called
	return out
}

func comment(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("# " + strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

func (w *writer) file(name, head string, docs ...*yaml.Node) {
	out := bytes.NewBufferString(head)
	out.Write(encode(docs...))
	w.out.Files[name] = out.Bytes()
}
