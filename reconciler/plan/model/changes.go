package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

func InfraChange(pool *intent.Pool, field string, from, to any) step.Change {
	return step.Change{Field: field, From: from, To: to, Object: pool.Infrastructure, Path: intent.Path{"spec"}.Join(FieldPath(field)...)}
}

// ReplicasChange is a change of the desired size. Its origin is the field that decides the
// size: spec.replicas, or the bound within which it is kept.
func ReplicasChange(pool *intent.Pool, from any, to int32) step.Change {
	out := step.Change{Field: "replicas", From: from, To: to, Object: pool.MachinePool, Path: intent.Path{"spec", "replicas"}}
	if pool.Replicas.Written && pool.Replicas.Value == to {
		return out
	}
	low, high, at := int32(0), int32(0), intent.Path{"spec"}
	switch {
	case pool.Group != nil:
		low, high = pool.Group.MinSize, pool.Group.MaxSize
	case pool.Nodegroup != nil:
		low, high, at = pool.Nodegroup.MinSize.Value, pool.Nodegroup.MaxSize.Value, intent.Path{"spec", "scaling"}
	}
	switch to {
	case low:
		out.Object, out.Path = pool.Infrastructure, at.Join("minSize")
	case high:
		out.Object, out.Path = pool.Infrastructure, at.Join("maxSize")
	}
	return out
}

// Reason says in a few words which fields a step changes.
func Reason(changes []step.Change) string {
	var fields []string
	for _, ch := range changes {
		fields = append(fields, ch.Field)
	}
	if len(fields) > 3 {
		fields = append(fields[:3], "…")
	}
	if len(fields) == 1 {
		return fields[0] + " differs"
	}
	return strings.Join(fields, ", ") + " differ"
}

// PlainJSON turns a value into the JSON value that a Change holds.
func PlainJSON(v any) any {
	var out any
	if err := json.Unmarshal(content.Canonical(v), &out); err != nil {
		panic("json value: " + err.Error())
	}
	if text, ok := out.(string); ok && text == "" {
		return nil
	}
	return out
}

// SettingChange is a change of a member of a group.
func SettingChange(pool *intent.Pool, m *field.Member, from, to any) step.Change {
	object := pool.Options
	if m.OfPool {
		object = pool.Infrastructure
	}
	return step.Change{Field: m.Field, From: PlainJSON(from), To: PlainJSON(to), Object: object, Path: intent.Path{"spec"}.Join(FieldPath(m.Field)...)}
}

func FieldPath(field string) intent.Path {
	p, err := intent.ParsePath(field)
	if err != nil {
		return intent.Path{field}
	}
	return p
}

func OrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// NewTags are the tags of a new resource but for those that weir gives to every one
// of its kind, with the value that it gives: what a manifest says, and what an
// annotation of the pool stands for.
func NewTags(pool *intent.Pool, usual, tags map[string]string) []step.Change {
	put := map[string]string{}
	for k, v := range tags {
		if given, ok := usual[k]; !ok || given != v {
			put[k] = v
		}
	}
	return TagChanges(pool, put, nil, nil)
}

// UsualTags are those that a resource of the pool has although no manifest names them.
// name is that of a group or template; a nodegroup has no tag of its own name.
func (in Input) UsualTags(pool *intent.Pool, name string, tags map[string]string) map[string]string {
	out := map[string]string{
		observed.TagOwner: in.Policy.Instance, observed.TagTarget: in.Policy.Target, observed.TagSource: in.Policy.Source, observed.TagPool: pool.Key.String(),
		observed.TagKeys: tags[observed.TagKeys], observed.TagHooks: tags[observed.TagHooks], observed.TagSuspended: tags[observed.TagSuspended], // these follow from the pool's tags, the hooks and the processes
	}
	cluster, known := in.Set.Cluster(pool.ClusterKey)
	if known {
		out[tagKubernetesCluster+cluster.TagName] = "owned"
	}
	if name != "" {
		out["Name"], out[observed.TagCAPARole] = name, "node"
	}
	if known && name != "" {
		out[observed.TagClusterPrefix+cluster.TagName] = "owned"
	}
	return out
}

// TagChanges are the changes of a resource's tags, sorted by key.
func TagChanges(pool *intent.Pool, put map[string]string, remove []string, have map[string]string) []step.Change {
	var out []step.Change
	for _, k := range slices.Sorted(maps.Keys(put)) {
		if k == observed.TagRevision || k == observed.TagSince {
			continue // no pool wants them: they go along with writes
		}
		var from any
		if v, ok := have[k]; ok {
			from = v
		}
		path := intent.Path{"spec", "additionalTags", k}
		switch k {
		case observed.TagHooks:
			path = intent.Path{"spec", "lifecycleHooks"}
		case observed.TagSuspended:
			path = intent.Path{"spec", "suspendProcesses"}
		}
		out = append(out, step.Change{Field: intent.Path{"tags", k}.String(), From: shownTag(k, from), To: shownTag(k, put[k]), Object: pool.Infrastructure, Path: path})
	}
	for _, k := range remove {
		out = append(out, step.Change{Field: intent.Path{"tags", k}.String(), From: shownTag(k, have[k])})
	}
	return out
}

// shownTag is the value of a tag as a plan shows it. A hash over user data is not shown:
// with it, anybody could try which secret the user data holds.
func shownTag(key string, value any) any {
	if key == observed.TagAdopted && value != nil {
		return "a hash of what the pool wants"
	}
	return value
}

// Minus returns the members of a list that are missing from another.
func Minus[T comparable](list, other []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return slices.Contains(other, v) })
}
