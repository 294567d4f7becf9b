package factor

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

// commonPatches returns the patches for all pools of a cluster.
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
		// Leave out the cluster's values, whatever the base has.
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

// object returns an object of a pool as it would be in the base, with the base's name.
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

// renames returns the patches that give a pool its name if no prefix and suffix can.
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
