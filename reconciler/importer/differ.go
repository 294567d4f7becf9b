package importer

import (
	"cmp"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// Difference is a field of a pool's manifests for which AWS and Git differ.
type Difference struct {
	// Object and Path identify the field. Value is AWS's value in the form of manifests, or nil if AWS has
	// none.
	Object intent.ObjectRef
	Path   intent.Path
	Value  any
	// Why explains why manifests cannot express AWS's value. Field then names the field.
	Field, Why string
}

// Name returns the field in the form of plans: below spec.
func (d Difference) Name() string {
	if d.Why != "" {
		return d.Field
	}
	return strings.TrimPrefix(d.Path.String(), "spec.")
}

// Differences returns the differences between Git and AWS for a pool, as far as its plan changes them. It
// leaves out differences that weir ignores anyway. The field table of import describes both sides. Removals
// come first, because some fields exclude each other. image is the image of the version that the pool wants.
func Differences(pool *intent.Pool, changes []step.Change, s *observed.State, image string) []Difference {
	d := differ{pool: pool, changes: changes, maker: maker{state: *s}, covered: map[int]bool{}}
	switch {
	case pool.Group != nil:
		if g, ok := s.Groups[pool.Group.Name]; ok {
			d.group(&g, image)
		}
	case pool.Nodegroup != nil:
		if n, ok := s.Nodegroups[observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: pool.Nodegroup.Name}]; ok {
			d.nodegroup(&n, image)
		}
	}
	for i, ch := range changes {
		if !d.covered[i] && !OwnMark(ch) && !slices.ContainsFunc(d.out, func(o Difference) bool { return o.Field == ch.Field }) {
			d.out = append(d.out, Difference{Field: ch.Field, Why: cannotSay(ch)})
		}
	}
	slices.SortStableFunc(d.out, func(a, b Difference) int { return cmp.Compare(rank(a), rank(b)) })
	return d.out
}

// OwnMark reports whether a change is about a tag that weir or an earlier tool maintains itself. No manifest
// contains it.
func OwnMark(ch step.Change) bool {
	p, err := intent.ParsePath(ch.Field)
	if err != nil || len(p) != 2 || p[0] != "tags" {
		return false
	}
	_, is := additionalTags(map[string]string{p[1]: ""})[p[1]]
	return !is
}

func rank(d Difference) int {
	switch {
	case d.Why != "":
		return 2
	case d.Value != nil:
		return 1
	}
	return 0
}

// cannotSay returns why a change of a plan cannot be written into manifests.
func cannotSay(ch step.Change) string {
	switch name := ch.Field; {
	case strings.HasPrefix(name, "tags"):
		return "it is not a tag of the manifests' own: weir keeps it as it is"
	case strings.HasPrefix(name, "userData"):
		return "user data follows from the bootstrap configuration: change that"
	case strings.Contains(name, "additionalSecurityGroups"):
		return "the security groups of the cluster and of the pool go together: write additionalSecurityGroups by hand"
	case strings.HasPrefix(name, "launchTemplate"):
		return "AWS launches machines there that no version of the pool's launch template describes"
	}
	return "weir does not write it: change it in the manifests by hand"
}

// differ collects the differences of one pool.
type differ struct {
	maker   maker
	pool    *intent.Pool
	changes []step.Change
	covered map[int]bool // changes that a difference covers
	out     []Difference
}

// add adds a difference if the plan has a change of the field.
func (d *differ) add(object intent.ObjectRef, at intent.Path, value any) {
	about := false
	for i, ch := range d.changes {
		if About(ch, object, at) {
			d.covered[i], about = true, true
		}
	}
	if about {
		d.put(object, at, value)
	}
}

// About reports whether a change of a plan is about a field of manifests, about a part of it, or about a
// section that contains it.
func About(ch step.Change, object intent.ObjectRef, at intent.Path) bool {
	p := ch.Path
	if tag, is := strings.CutPrefix(ch.Field, "tags"); is && len(p) == 0 { // a removed tag names no object
		if rest, err := intent.ParsePath("x" + tag); err == nil {
			p = intent.Path{"spec", "additionalTags"}.Join(rest[1:]...)
		}
	} else if ch.Object != object {
		// A plan attributes changes of a mixed instances policy to the pool, even if PoolOptions set it.
		if object.Kind != "PoolOptions" || len(at) < 3 {
			return false
		}
		at = intent.Path{"spec"}.Join(at[2:]...)
	}
	return len(p) > 0 && along(p, at)
}

func (d *differ) put(object intent.ObjectRef, at intent.Path, value any) {
	if object.Kind == "" {
		d.out = append(d.out, Difference{Field: strings.TrimPrefix(at.String(), "spec."), Why: "only PoolOptions has this field, and the pool has no PoolOptions"})
		return
	}
	d.out = append(d.out, Difference{Object: object, Path: slices.Clone(at), Value: value})
}

// along reports whether one of two paths is a prefix of the other. Positions in lists are ignored, because a
// plan often shows a list as a whole.
func along(a, b intent.Path) bool {
	for i := range min(len(a), len(b)) {
		if strings.HasPrefix(a[i], "[") || strings.HasPrefix(b[i], "[") {
			return true
		}
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// differences calls found for each field in which two values differ. It compares the items of lists of equal
// length, and matches hooks by name.
func differences(at intent.Path, want, have any, found func(intent.Path, any)) {
	if reflect.DeepEqual(want, have) {
		return
	}
	switch a := want.(type) {
	case map[string]any:
		b, ok := have.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			differences(at.Join(k), a[k], b[k], found)
		}
		return
	case []any:
		b, ok := have.([]any)
		if !ok || len(a) != len(b) || at[len(at)-1] == "taints" {
			break
		}
		name := func(v any) string { m, _ := v.(map[string]any); n, _ := m["name"].(string); return n }
		byName := at[len(at)-1] == "lifecycleHooks"
		if byName && !slices.EqualFunc(a, b, func(x, y any) bool { return name(x) == name(y) }) {
			break
		}
		for i := range a {
			elem := intent.Index(i)
			if byName {
				elem = "[name=" + name(a[i]) + "]"
			}
			differences(at.Join(elem), a[i], b[i], found)
		}
		return
	}
	found(at, have)
}

// compare adds the differences of the pool's own object and of its options.
func (d *differ) compare(want, have words) {
	spec := intent.Path{"spec"}
	sections(want, have)
	differences(spec, plain(want.spec), plain(have.spec), func(at intent.Path, v any) { d.add(d.pool.Infrastructure, at, v) })
	differences(spec, plain(want.options), plain(have.options), func(at intent.Path, v any) { d.add(d.pool.Options, at, v) })
}

// sections gives both sides the same option sections, because differences would treat a missing section as
// one field.
func sections(want, have words) {
	for _, sides := range [][2]words{{want, have}, {have, want}} {
		for section := range sides[0].options {
			if sides[1].options[section] == nil {
				sides[1].options[section] = map[string]any{}
			}
		}
	}
}

// words contains a pool's fields in the form of manifests.
type words struct{ spec, options map[string]any }

func newWords() words { return words{map[string]any{}, map[string]any{}} }

// from returns AWS's value for a changed field.
func (d *differ) from(name string) (v any, ok bool) {
	i := slices.IndexFunc(d.changes, func(ch step.Change) bool { return ch.Field == name })
	if i < 0 {
		return nil, false
	}
	return d.changes[i].From, true
}

// group adds the differences between a pool in Git and its Auto Scaling group. image is the id of the image
// that the pool uses.
func (d *differ) group(g *observed.Group, image string) {
	p := d.pool.Group
	want, have := newWords(), newWords()
	fields(field.Group, p.GroupSettings, want.spec, want.options)
	fields(field.Group, g.GroupSettings, have.spec, have.options)
	mixed(p.MixedInstancesPolicy, want.spec, want.options)
	mixed(g.MixedInstancesPolicy, have.spec, have.options)
	a, _ := want.spec["mixedInstancesPolicy"].(map[string]any)
	b, _ := have.spec["mixedInstancesPolicy"].(map[string]any)
	if b != nil && b["overrides"] == nil && len(g.MixedInstancesPolicy.Overrides) > 0 && d.pool.Options.Kind == "" {
		delete(a, "overrides") // only PoolOptions can express AWS's overrides, and the pool has none
	}
	want.spec["minSize"], have.spec["minSize"] = p.MinSize, g.MinSize
	want.spec["maxSize"], have.spec["maxSize"] = p.MaxSize, g.MaxSize
	want.spec["additionalTags"], have.spec["additionalTags"] = d.tags(p.Tags, observed.GroupTagValues(g.Tags))
	if _, ok := d.from("subnets"); ok {
		have.spec["subnets"] = subnets(g.SubnetIDs)
	}
	declared, suspended := map[string]any{}, map[string]any{}
	for _, process := range p.SuspendedProcesses {
		declared[processKey(process.Name)] = process.Suspended
		suspended[processKey(process.Name)] = slices.Contains(g.SuspendedProcesses, process.Name)
	}
	want.spec["suspendProcesses"], have.spec["suspendProcesses"] = map[string]any{"processes": declared}, map[string]any{"processes": suspended}
	if h, read := d.maker.state.Hooks[g.Name]; read {
		d.hooks(p.LifecycleHooks, h.Hooks, g.Tags[observed.TagHooks].Value, want, have)
	}
	d.compare(want, have)
	d.addReplicas(g.DesiredCapacity)
	d.template(g.Template, image)
}

// hooks compares the hooks in the manifests and the hooks that weir made, even if they were removed from
// Git.
func (d *differ) hooks(declared, there []intent.LifecycleHook, record string, want, have words) {
	list := func(in []intent.LifecycleHook, of func(intent.LifecycleHook) bool) any {
		var out []intent.LifecycleHook
		for _, h := range in {
			if h.Name != intent.DrainHook && of(h) {
				out = append(out, observed.HookDefaults(h))
			}
		}
		if out == nil {
			return nil
		}
		slices.SortFunc(out, func(a, b intent.LifecycleHook) int { return strings.Compare(a.Name, b.Name) })
		return lifecycleHooks(out)
	}
	want.spec["lifecycleHooks"] = list(declared, func(intent.LifecycleHook) bool { return true })
	have.spec["lifecycleHooks"] = list(there, func(h intent.LifecycleHook) bool {
		return observed.Marked(record, h.Name) || slices.ContainsFunc(declared, func(o intent.LifecycleHook) bool { return o.Name == h.Name })
	})
}

// tags returns the user's tags that the plan changes, on both sides.
func (d *differ) tags(want, have map[string]string) (a, b map[string]any) {
	of := func(tags map[string]string) map[string]any {
		out := additionalTags(tags)
		maps.DeleteFunc(out, func(k string, _ any) bool {
			_, changes := d.from(intent.Path{"tags", k}.String())
			return !changes
		})
		return out
	}
	return of(want), of(have)
}

func (d *differ) addReplicas(have int32) {
	if _, ok := d.from("replicas"); ok {
		d.add(d.pool.MachinePool, intent.Path{"spec", "replicas"}, have)
	}
}

// nodegroup adds the differences between a pool in Git and its nodegroup. image is the id of the image that
// the pool uses.
func (d *differ) nodegroup(n *observed.Nodegroup, image string) {
	p := d.pool.Nodegroup
	want, have := newWords(), newWords()
	fields(field.Nodegroup, p.NodegroupSettings, want.spec, want.options)
	fields(field.Nodegroup, n.NodegroupSettings, have.spec, have.options)
	for _, side := range []words{want, have} {
		if side.spec["labels"] == nil {
			side.spec["labels"] = map[string]any{}
		}
	}
	want.spec["scaling"] = map[string]any{"minSize": p.MinSize.Value, "maxSize": p.MaxSize.Value}
	have.spec["scaling"] = map[string]any{"minSize": n.MinSize, "maxSize": n.MaxSize}
	want.spec["additionalTags"], have.spec["additionalTags"] = d.tags(p.Tags, n.Tags)
	if _, ok := d.from("subnetIDs"); ok {
		have.spec["subnetIDs"] = plain(n.SubnetIDs)
	}
	if _, ok := d.from("roleName"); ok {
		have.spec["roleName"] = path.Base(n.NodeRole)
	}
	d.compare(want, have)
	d.addReplicas(n.DesiredSize)
	if _, ok := d.from("version"); ok && n.Version != "" {
		d.add(d.pool.MachinePool, intent.Path{"spec", "template", "spec", "version"}, "v"+strings.TrimPrefix(n.Version, "v")+".0")
	}
	d.template(n.Template, image)
}
