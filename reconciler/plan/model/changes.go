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

// ReplicasChange returns a change of the desired size. Its origin is the field that decides the
// size: spec.replicas, or minSize or maxSize if that bound applies.
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

// Reason names the fields that a step changes, up to three.
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

// PlainJSON converts a value into the JSON value for a Change. An empty string becomes nil.
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

// SettingChange returns the change of one setting of a group.
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

// NewTags returns the tags of a new resource as changes. It omits tags that weir sets on every
// resource of the kind with the usual value.
func NewTags(pool *intent.Pool, usual, tags map[string]string) []step.Change {
	put := map[string]string{}
	for k, v := range tags {
		if given, ok := usual[k]; !ok || given != v {
			put[k] = v
		}
	}
	return TagChanges(pool, put, nil, nil)
}

// UsualTags returns the tags that a resource of the pool gets although no manifest names them. name
// is the name of a group or template. It is empty for a nodegroup, which has no tag with its name.
func (in Input) UsualTags(pool *intent.Pool, name string, tags map[string]string) map[string]string {
	out := map[string]string{
		observed.TagOwner: in.Policy.Instance, observed.TagTarget: in.Policy.Target, observed.TagSource: in.Policy.Source, observed.TagPool: pool.Key.String(),
		observed.TagKeys: tags[observed.TagKeys], observed.TagHooks: tags[observed.TagHooks], observed.TagSuspended: tags[observed.TagSuspended], // derived from the pool's tags, hooks and processes
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

// TagChanges returns the changes of a resource's tags, sorted by key.
func TagChanges(pool *intent.Pool, put map[string]string, remove []string, have map[string]string) []step.Change {
	var out []step.Change
	for _, k := range slices.Sorted(maps.Keys(put)) {
		if k == observed.TagRevision || k == observed.TagSince {
			continue // no pool wants these; weir adds them to other writes
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

// shownTag returns the value of a tag as a plan shows it. It replaces a hash over user data,
// because with the hash anybody could test guesses of a secret in the user data.
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
