package factor

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// writer makes the files of a repository.
type writer struct {
	parts  []*part
	shapes []*shape
	refs   []reference
	taken  map[string]bool
	// common are the values that all pools of a cluster have, by cluster.
	common map[string][]leaf
	out    Repository
}

// settle finds what stands in the clusters' kustomizations: the values of paths that all
// pools of a cluster share, where bases say another value or none. What all users of a
// base get so, the base leaves out.
func (w *writer) settle() {
	tallies := w.tallies()
	patched := map[string]bool{} // paths that a patch of some cluster makes shorter
	differs := map[string]bool{} // paths for which a cluster's pools use a base that says otherwise
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

// tally counts what the pools of a cluster say.
type tally struct {
	// first is the first pool's value of a path, count how many pools have the same, and
	// need how many of these have a base that says otherwise.
	first       map[string]leaf
	count, need map[string]int
	// roles counts the objects of each role, and based says that a pool has a base.
	roles map[string]int
	based bool
}

// shared reports whether all objects that a patch of the path would be for have the same value.
func (t *tally) shared(path string) bool {
	l, ok := t.first[path]
	return ok && l.value != any(follower{}) && t.count[path] == t.roles[l.role]
}

// tallies counts by cluster.
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

// addRoles counts the objects of a pool; a patch of a role would be for each of them.
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

// references writes what kustomize is to follow.
func (w *writer) references() {
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

// roles are those of a pool's objects, in the order in which the pool has them.
func (p *part) roles() (out []string) {
	for _, o := range p.pool.Objects {
		if role := roleOf(o); p.objects[role] != nil && !slices.Contains(out, role) {
			out = append(out, role)
		}
	}
	return out
}

// object is an object of the base.
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

// overlay writes the directory of a cluster.
func (w *writer) overlay(dir string, c *Cluster, parts []*part) {
	resources := []any{}
	if slices.ContainsFunc(parts, func(p *part) bool { return p.shape != nil }) {
		resources = append(resources, "../../references")
	}
	taken := map[string]bool{}
	var docs []*yaml.Node
	for _, o := range c.Objects {
		docs = append(docs, document(o))
	}
	w.file(path.Join(dir, "cluster.yaml"), "", docs...)
	resources = append(resources, "cluster.yaml")
	for _, p := range parts {
		name := unique(fileName(p.pool.Name), taken)
		if p.pool.Secret != nil {
			file := "secrets/" + name + ".yaml"
			w.out.Files[path.Join(dir, file)] = p.pool.Secret
			w.out.Secrets[p.pool.Name] = path.Join(dir, file)
			resources = append(resources, file)
		}
		if p.shape == nil {
			file := "pools/" + name + ".yaml"
			var docs []*yaml.Node
			for _, o := range p.pool.Objects {
				docs = append(docs, document(o))
			}
			w.file(path.Join(dir, file), comment(p.pool.Notes), docs...)
			w.out.Pools[p.pool.Name] = path.Join(dir, file)
			resources = append(resources, file)
			continue
		}
		below := "pools/" + name
		w.pool(path.Join(dir, below), p)
		w.out.Pools[p.pool.Name] = path.Join(dir, below)
		resources = append(resources, below)
		if len(p.beside) > 0 {
			file := "pools/" + name + "/beside.yaml"
			var docs []*yaml.Node
			for _, o := range p.beside {
				docs = append(docs, document(o))
			}
			w.file(path.Join(dir, file), "# Listed in the overlay, as the pool's kustomization would rename it.\n", docs...)
			resources = append(resources, file)
		}
	}
	k := kustomization("resources", resources)
	if patches := w.commonPatches(c.Name); len(patches) > 0 {
		k["patches"] = patches
	}
	w.file(path.Join(dir, "kustomization.yaml"), "", document(k))
	w.out.Overlays = append(w.out.Overlays, dir)
}

// commonPatches are for all pools of a cluster.
func (w *writer) commonPatches(cluster string) (out []any) {
	byRole := map[string][]leaf{}
	for _, l := range w.common[cluster] {
		byRole[l.role] = append(byRole[l.role], l)
	}
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		version, kind, _ := strings.Cut(role, joint)
		body := grow(byRole[role])
		meta, _ := body["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			body["metadata"] = meta
		}
		body["apiVersion"], body["kind"], meta["name"] = version, kind, "all"
		out = append(out, map[string]any{"target": map[string]any{"kind": kind}, "patch": text(body)})
	}
	return out
}

// pool writes the directory of a pool that uses a base.
func (w *writer) pool(dir string, p *part) {
	s := p.shape
	k := map[string]any{"resources": inline("../../../../bases/" + s.name)}
	var patches []any
	prefix, suffix, fits := w.split(p)
	if fits {
		if prefix != "" {
			k["namePrefix"] = prefix
		}
		if suffix != "" {
			k["nameSuffix"] = suffix
		}
	}
	for _, role := range p.roles() {
		version, kind, _ := strings.Cut(role, joint)
		to := p.object(role)
		for _, l := range w.common[p.pool.Cluster] {
			if l.role == role {
				without(to, l.keys)
			}
		}
		d := difference(s.object(role), to)
		// What the cluster decides, whatever the base says.
		for _, l := range w.common[p.pool.Cluster] {
			if l.role == role && d != nil {
				without(d, l.keys)
			}
		}
		if len(d) == 0 {
			continue
		}
		meta, _ := d["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			d["metadata"] = meta
		}
		d["apiVersion"], d["kind"], meta["name"] = version, kind, s.called
		patches = append(patches, map[string]any{"patch": text(d)})
	}
	if !fits {
		patches = append(patches, w.renames(p)...)
	}
	if len(patches) > 0 {
		k["patches"] = patches
	}
	w.file(path.Join(dir, "kustomization.yaml"), comment(p.pool.Notes), document(k))
}

// object is an object of a pool as the base would have it: with the base's name.
func (p *part) object(role string) map[string]any {
	var own []leaf
	for _, l := range p.leaves {
		if l.role == role {
			if l.value == any(follower{}) {
				l.value = p.shape.called
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
	meta["name"] = p.shape.called
	return out
}

// renames are patches that give a pool its name where no prefix and suffix can.
func (w *writer) renames(p *part) (out []any) {
	rename := func(target map[string]any, keys []string) {
		pointer := ""
		for _, k := range keys {
			pointer += "/" + strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
		}
		op := map[string]any{"op": "replace", "path": pointer, "value": p.pool.Name}
		out = append(out, map[string]any{"target": target, "patch": text([]any{op})})
	}
	for _, role := range p.roles() {
		_, kind, _ := strings.Cut(role, joint)
		for _, l := range p.leaves {
			if l.role == role && l.value == any(follower{}) {
				rename(map[string]any{"kind": kind}, l.keys)
			}
		}
	}
	rename(map[string]any{"name": p.shape.called}, []string{"metadata", "name"})
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
