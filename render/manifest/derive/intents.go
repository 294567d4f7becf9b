// Package derive makes intents from decoded and checked objects: names and tags like CAPA's, groups,
// nodegroups, launch templates and user data, and lookups for values that only AWS knows.
//
// Builder has the data that pools of one render share: clusters, shared launch templates, and the AWS names
// in use. A draft is a pool during derivation. It has its own faults, and joins the set if none of them is an
// error. A valid pool that cannot be planned, because Git does not have a value that it needs, is in the set
// with the reason why it is blocked. Options are read after the pool. A member that both the pool and its
// options set is a fault.
package derive

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// Options of Intents. The zero value is usable.
type Options struct {
	// Renamed reports whether the build renamed an object of a kind, and returns the new name. It provides
	// the hint for a reference that a name prefix broke. If it is nil, nothing was renamed.
	Renamed func(kind, oldName string) (newName string, ok bool)
	// Partial accepts a base: a render that has only MachinePools, or only infrastructure pools. Otherwise a
	// pool without its other half is an error.
	Partial bool
	// AnySize accepts user data that exceeds EC2's limit.
	AnySize bool
	// Judged returns how to check the text of a Secret with user data. If it is nil, every text is checked as
	// it is.
	Judged func(secret intent.ObjectRef) Judgement
	// Refused reports objects whose pools are left out because of a fault that the caller reports. If it is
	// nil, no pool is left out.
	Refused func(intent.ObjectRef) bool
}

// Judgement describes how to check the text of user data. The zero value means to check the text as it is.
type Judgement struct {
	// Format is the format to assume. If it is empty, the format is detected.
	Format string
	// AnyForm accepts any text.
	AnyForm bool
}

// New returns a Builder. It copies shared launch templates to the fields of the pools' own templates. No
// later stage changes the objects.
func New(x *kinds.Index, o Options) *Builder {
	all := objects{index: x, renamed: o.Renamed}
	b := &Builder{objects: all, partial: o.Partial && halves(x), writer: writer{objects: all, anySize: o.AnySize, judged: o.Judged, known: map[intent.UserData]userData{}}, faults: x.Faults, refused: o.Refused,
		clusters: map[intent.Key]*cluster{}, used: map[intent.ObjectRef]intent.ObjectRef{}, awsNames: map[string]claim{}}
	b.launchConfigs = newLaunchConfigs(b)
	return b
}

// Intents derives the desired state of AWS from checked objects.
func (b *Builder) Intents() intent.Set {
	b.readClusters()
	b.readPoolOptions()
	b.useMisread()
	for _, mp := range b.index.MachinePools {
		b.checkClusterKnown(mp)
		b.pool(mp)
	}
	for _, o := range b.index.FleetRollouts.Sorted() {
		if !o.Broken {
			b.set.Rollouts = append(b.set.Rollouts, o.Spec.Intent(o.Ref()))
		}
	}
	b.unused()
	b.launchConfigs.moveFaults(b.faults)
	b.set.Unplanned = b.unplanned()
	b.set.Ignored = b.index.Ignored
	b.set.Sort()
	return b.set
}

// objects has the objects of the render, and the renames of the build.
type objects struct {
	index   *kinds.Index
	renamed func(kind, oldName string) (newName string, ok bool)
}

// Builder derives intents from the index.
type Builder struct {
	objects
	faults   *kinds.Faults
	clusters map[intent.Key]*cluster
	refused  func(intent.ObjectRef) bool
	// used maps infrastructure objects to the MachinePool that refers to them.
	used map[intent.ObjectRef]intent.ObjectRef
	// awsNames maps "kind name" of AWS resources to the field that claims the name.
	awsNames map[string]claim
	// poolOptions has the PoolOptions by pool. strayOptions has the namespaces with a PoolOptions whose pool
	// is unknown.
	poolOptions  map[poolID]*kinds.Decoded[kinds.PoolOptionsSpec]
	strayOptions map[string]bool
	writer       writer
	// launchConfigs are the shared launch templates, or nil.
	launchConfigs *launchConfigs
	// partial accepts a pool without its other half.
	partial bool
	set     intent.Set
}

// claim is the field that sets the name of a pool's AWS resource.
type claim struct {
	pool, ref intent.ObjectRef
	path      intent.Path
}

// pool derives the pool of a MachinePool.
func (b *Builder) pool(mp *kinds.Decoded[kinds.MachinePoolSpec]) {
	r := mp.Reporter(b.faults)
	checkGroup(b.faults, mp)
	ref := mp.Spec.Template.Spec.InfrastructureRef
	at := path("spec", "template", "spec", "infrastructureRef")
	key := intent.Key{Namespace: mp.Key().Namespace, Name: ref.Name}
	switch {
	case ref.Kind == string(intent.GroupPool):
		if infra, ok := b.index.Pools[key]; ok {
			b.claimInfrastructure(infra.Ref(), r, at)
			if !mp.Broken && !infra.Broken {
				b.build(mp, func(d *draft) { b.groupPool(d, infra) })
			} else if c := mp.Spec.Template.Spec.Bootstrap.ConfigRef; c != nil && c.Kind == "KubeadmConfig" && !kinds.BringsTemplate(infra.Metadata) {
				// Report this now, not only after all other faults are fixed.
				if v, ok := kinds.ParseKubernetes(mp.Spec.Template.Spec.Version); ok {
					rules.CheckKubeadmVersion(r, v)
				}
			}
			return
		}
	case ref.Kind == string(intent.NodegroupPool):
		if infra, ok := b.index.ManagedPools[key]; ok {
			b.claimInfrastructure(infra.Ref(), r, at)
			if !mp.Broken && !infra.Broken {
				b.build(mp, func(d *draft) { b.nodegroupPool(d, infra) })
			}
			return
		}
	case ref.Kind == "":
		return // decoding reported it
	default:
		otherInfrastructure(r, at, ref.Kind)
		return
	}
	if group := groupOf(&ref); group != "" && group != kinds.GroupInfrastructure {
		return // reported
	}
	b.dangling(r, at.Join("name"), &ref, halfPair(b.partial), "reference-not-found", "")
}

// otherInfrastructure reports a MachinePool with an infrastructure kind that weir does not read. It belongs
// to another provider, or the kind is a mistake.
func otherInfrastructure(r kinds.Reporter, at intent.Path, kind string) {
	const pools = "the pools of AWS are AWSMachinePool and AWSManagedMachinePool"
	if meant, ok := kinds.NearPoolKind(kind); ok {
		r.Error(at.Join("kind"), "misspelled-kind", fmt.Sprintf("%s refers to a %s, which weir does not read; %s is similar", r.Ref, kind, meant), "write "+meant+" if that is meant")
		return
	}
	if strings.HasPrefix(kind, "AWS") {
		r.Error(at.Join("kind"), "misspelled-kind", fmt.Sprintf("%s refers to a %s, which is not a pool", r.Ref, kind), pools)
		return
	}
	r.Info(at.Join("kind"), "pool-not-ours", fmt.Sprintf("%s is ignored: its infrastructure is a %s", r.Ref, kind), "")
}

// checkGroup reports a reference to an AWS pool kind with the wrong API group. Cluster API would not find the
// object.
func checkGroup(faults *kinds.Faults, mp *kinds.Decoded[kinds.MachinePoolSpec]) {
	ref := &mp.Spec.Template.Spec.InfrastructureRef
	group := groupOf(ref)
	if !kinds.IsPoolKind(ref.Kind) || group == "" || group == kinds.GroupInfrastructure {
		return
	}
	at, written := path("spec", "template", "spec", "infrastructureRef", "apiVersion"), ref.APIVersion
	if ref.APIGroup != "" {
		at, written = path("spec", "template", "spec", "infrastructureRef", "apiGroup"), ref.APIGroup
	}
	mp.Reporter(faults).Error(at, "misspelled-kind", fmt.Sprintf("%s refers to a %s of %q, which does not exist", mp.Ref(), ref.Kind, written), "the group of the pools of AWS is "+kinds.GroupInfrastructure)
	mp.Broken = true
}

// groupOf returns the API group in a reference, or "".
func groupOf(ref *kinds.ObjectReference) string {
	if ref.APIGroup != "" {
		return ref.APIGroup
	}
	return intent.ObjectRef{APIVersion: ref.APIVersion}.Group()
}

// halfPair returns the severity of the fault for a pool without its other half.
func halfPair(partial bool) diag.Severity {
	if partial {
		return diag.Warning
	}
	return diag.Error
}

// claimInfrastructure reports an infrastructure object that two MachinePools refer to.
func (b *Builder) claimInfrastructure(infra intent.ObjectRef, r kinds.Reporter, at intent.Path) {
	if first, taken := b.used[infra]; taken {
		r.To.Add(kinds.Fault{Code: "shared-infrastructure", Summary: fmt.Sprintf("%s and %s both refer to %s", first, r.Ref, infra),
			Detail: "each MachinePool needs a pool object of its own", Ref: r.Ref, Path: at.Join("name"),
			Related: []kinds.RelatedField{{Ref: first, Path: at.Join("name"), Message: "the other reference"}}})
		return
	}
	b.used[infra] = r.Ref
}

// unused reports infrastructure pools that no MachinePool refers to.
func (b *Builder) unused() {
	var refs []intent.ObjectRef
	for _, o := range b.index.Pools {
		refs = append(refs, o.Ref())
	}
	for _, o := range b.index.ManagedPools {
		refs = append(refs, o.Ref())
	}
	for _, ref := range refs {
		if _, ok := b.used[ref]; !ok {
			kinds.Reporter{Ref: ref, To: b.faults}.Report(halfPair(b.partial), path("metadata", "name"), "pool-without-machinepool",
				fmt.Sprintf("no MachinePool refers to %s", ref), "")
		}
	}
}

// dangling reports a reference to an object that is not in the render.
func (b objects) dangling(r kinds.Reporter, at intent.Path, ref *kinds.ObjectReference, s diag.Severity, code, consequence string) {
	detail := consequence
	if b.renamed != nil {
		if now, ok := b.renamed(ref.Kind, ref.Name); ok {
			detail = fmt.Sprintf("the build renamed it to %q and did not change the reference: kustomize needs a nameReference configuration "+
				"for kind %s with the field %s of %s", now, ref.Kind, pathSlashes(at), r.Ref.Kind)
		}
	}
	r.Report(s, at, code, fmt.Sprintf("%s %q, to which %s refers, is not in the render", ref.Kind, ref.Name, r.Ref), detail)
}

// pathSlashes returns a path in the form of kustomize's field specifications.
func pathSlashes(p intent.Path) string {
	out := ""
	for i, e := range p {
		if i > 0 {
			out += "/"
		}
		out += e
	}
	return out
}

// draft is a pool during derivation, with its cluster.
type draft struct {
	rules.Derived
	cluster *cluster
	version kinds.Kubernetes
	// broken is true if the pool is left out for a fault that was reported elsewhere.
	broken bool
}

// build derives a pool and adds it to the set unless it has an error.
func (b *Builder) build(mp *kinds.Decoded[kinds.MachinePoolSpec], fill func(*draft)) {
	d := &draft{Derived: rules.Derived{Source: mp, Faults: &kinds.Faults{}}}
	d.AtMachinePool = mp.Reporter(d.Faults)
	d.Key, d.MachinePool = mp.Key(), mp.Ref()
	t := mp.Spec.Template.Spec
	if t.Version != "" {
		d.version, _ = kinds.ParseKubernetes(t.Version) // checked before
		d.Version = d.version.Text
	}
	d.MinReadySeconds = max(mp.Spec.MinReadySeconds, t.MinReadySeconds)
	if by, ok := mp.Metadata.Annotations[kinds.AnnotationReplicasBy]; ok {
		d.ReplicasManagedExternally = by != "false"
	}
	d.Replicas = replicas(mp, d.AtMachinePool)
	d.ClusterKey = intent.Key{Namespace: mp.Key().Namespace, Name: mp.Spec.ClusterName}
	fill(d)
	b.applyPoolOptions(d)
	d.broken = d.broken || b.index.ClusterMisread(d.Key.Namespace) != nil
	d.foreignTypes()
	d.Check(b.index)
	if !d.Faults.HasErrors() && !d.cluster.broken && !d.broken && !refuses(b.refused, d) {
		b.set.Pools = append(b.set.Pools, d.Pool)
	}
	b.faults.List = append(b.faults.List, d.Faults.List...)
}

// refuses reports whether one of a pool's objects is refused.
func refuses(refused func(intent.ObjectRef) bool, d *draft) bool {
	return refused != nil && (refused(d.MachinePool) || refused(d.Infrastructure) || refused(d.Bootstrap))
}

// identify sets the fields that both kinds take from their infrastructure object.
func (b *Builder) identify(d *draft, infra intent.ObjectRef, meta kinds.Meta, kind intent.PoolKind, needsEKS bool) {
	d.Kind, d.Infrastructure = kind, infra
	d.AtPool = kinds.Reporter{Ref: infra, To: d.Faults}
	d.cluster = b.cluster(d.ClusterKey, needsEKS, d.AtMachinePool)
	d.Cluster = &rules.Cluster{TagName: d.cluster.tagName(), Region: d.cluster.region, Network: d.cluster.network}
	d.Labels = d.Source.Metadata.Labels
	d.Paused = isPaused(meta) || isPaused(d.Source.Metadata) || d.cluster.paused
	kinds.ReadAnnotations([]kinds.Annotated{{Reporter: d.AtPool, Meta: meta}, {Reporter: d.AtMachinePool, Meta: d.Source.Metadata}}, &d.Pool)
}

// bound moves the size into its bounds.
func (d *draft) bound(low, high int32) {
	n := min(max(d.Replicas.Value, low), high)
	if n == d.Replicas.Value {
		return
	}
	if d.Replicas.Written && !d.ReplicasManagedExternally {
		d.AtMachinePool.Warn(path("spec", "replicas"), "replicas-out-of-bounds",
			fmt.Sprintf("spec.replicas is %d, outside the pool's bounds %d to %d; %d is used", d.Replicas.Value, low, high, n), "")
	}
	d.Replicas.Value = n
}

// claimName reports two pools that use the same name for an AWS resource.
func (b *Builder) claimName(d *draft, kind, name string, c claim) {
	id := kind + " " + name
	if first, taken := b.awsNames[id]; taken && first.pool != c.pool {
		d.Faults.Add(kinds.Fault{Code: "name-taken", Summary: fmt.Sprintf("%s and %s both want the %s %q", first.pool, c.pool, kind, name),
			Detail: "AWS allows only one with that name in an account and region", Ref: c.ref, Path: c.path,
			Related: []kinds.RelatedField{{Ref: first.ref, Path: first.path, Message: "the other one"}}})
		return
	}
	b.awsNames[id] = c
}

// zones returns the zones for a lookup: the zones of the pool's own object, or the failure domains of its
// MachinePool.
func (d *draft) zones(own []string) string {
	if joined := intent.JoinList(own); joined != "" {
		return joined
	}
	joined := intent.JoinList(d.Source.Spec.FailureDomains)
	d.FailureDomains = joined != ""
	return joined
}

// path returns a field path.
func path(elems ...string) intent.Path { return elems }
