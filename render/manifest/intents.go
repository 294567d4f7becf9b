package manifest

import (
	"fmt"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// renamedFunc tells whether the build gave an object of a kind another name than the
// files do, and which; nil knows of no renaming.
type renamedFunc func(kind, oldName string) (newName string, ok bool)

// newBuilder puts the launch templates that pools share where one of their own would
// be. What it then makes of the objects is set.
func newBuilder(x *index, renamed renamedFunc) *builder {
	b := &builder{renamed: renamed, index: x, faults: x.faults, clusters: map[intent.Key]*cluster{}, used: map[intent.ObjectRef]intent.ObjectRef{}, awsNames: map[string]claim{}, userDatas: map[intent.UserData]userData{}}
	b.launchConfigs = newLaunchConfigs(b)
	return b
}

// derive returns what AWS should hold, of objects that were checked.
func (b *builder) derive() intent.Set {
	b.readClusters()
	b.readPoolOptions()
	for _, mp := range b.index.machinePools {
		b.checkClusterKnown(mp)
		b.pool(mp)
	}
	b.unused()
	b.launchConfigs.place(b.faults)
	b.set.Ignored = b.index.ignored
	b.set.Sort()
	return b.set
}

// builder derives intents from the index.
type builder struct {
	renamed  renamedFunc
	index    *index
	faults   *faults
	clusters map[intent.Key]*cluster
	// used maps infrastructure objects to the MachinePool that refers to them.
	used map[intent.ObjectRef]intent.ObjectRef
	// awsNames maps "kind name" of AWS resources to what wants them.
	awsNames map[string]claim
	// poolOptions are the PoolOptions by the pool that they are for; strayOptions
	// are the namespaces with one of which that cannot be told.
	poolOptions  map[poolID]*object[PoolOptionsSpec]
	strayOptions map[string]bool
	// userDatas are those of the pools, each once; their texts have textBytes.
	userDatas map[intent.UserData]userData
	textBytes int
	// launchConfigs are the launch templates that pools share; nil knows of none.
	launchConfigs *launchConfigs
	set           intent.Set
}

// claim is the field that gives an AWS resource its name.
type claim struct {
	ref  intent.ObjectRef
	path intent.Path
}

// pool derives one pool from its MachinePool.
func (b *builder) pool(mp *object[MachinePoolSpec]) {
	r := mp.reporter(b.faults)
	ref := mp.Spec.Template.Spec.InfrastructureRef
	at := path("spec", "template", "spec", "infrastructureRef")
	key := intent.Key{Namespace: mp.key().Namespace, Name: ref.Name}
	switch {
	case ref.Kind == string(intent.GroupPool):
		if infra, ok := b.index.pools[key]; ok {
			b.claimInfrastructure(infra.ref(), r, at)
			if !mp.broken && !infra.broken {
				b.build(mp, func(d *draft) { b.groupPool(d, infra) })
			} else if c := mp.Spec.Template.Spec.Bootstrap.ConfigRef; c != nil && c.Kind == "KubeadmConfig" && !bringsTemplate(infra.Metadata) {
				// Found now, and not once the rest is mended.
				if v, ok := parseKubernetes(mp.Spec.Template.Spec.Version); ok {
					checkKubeadmVersion(r, v)
				}
			}
			return
		}
	case ref.Kind == string(intent.NodegroupPool):
		if infra, ok := b.index.managedPools[key]; ok {
			b.claimInfrastructure(infra.ref(), r, at)
			if !mp.broken && !infra.broken {
				b.build(mp, func(d *draft) { b.nodegroupPool(d, infra) })
			}
			return
		}
	case ref.Kind == "":
		return // reported by decoding
	default:
		r.info(at.Join("kind"), "pool-not-ours", fmt.Sprintf("%s is left alone: its infrastructure is a %s", mp.ref(), ref.Kind), "")
		return
	}
	b.dangling(r, at.Join("name"), &ref, diag.Error, "reference-not-found", "")
}

// claimInfrastructure reports two MachinePools that share one infrastructure object.
func (b *builder) claimInfrastructure(infra intent.ObjectRef, r reporter, at intent.Path) {
	if first, taken := b.used[infra]; taken {
		r.to.add(Fault{Code: "shared-infrastructure", Summary: fmt.Sprintf("%s and %s both refer to %s", first, r.ref, infra),
			Detail: "each MachinePool needs a pool object of its own", Ref: r.ref, Path: at.Join("name"),
			Related: []RelatedField{{Ref: first, Path: at.Join("name"), Message: "the other reference"}}})
		return
	}
	b.used[infra] = r.ref
}

// unused reports pool objects that no MachinePool refers to.
func (b *builder) unused() {
	var refs []intent.ObjectRef
	for _, o := range b.index.pools {
		refs = append(refs, o.ref())
	}
	for _, o := range b.index.managedPools {
		refs = append(refs, o.ref())
	}
	for _, ref := range refs {
		if _, ok := b.used[ref]; !ok {
			reporter{ref: ref, to: b.faults}.warn(path("metadata", "name"), "pool-without-machinepool",
				fmt.Sprintf("%s is ignored: no MachinePool refers to it", ref), "")
		}
	}
}

// dangling reports a reference to an object that is not in the render.
func (b *builder) dangling(r reporter, at intent.Path, ref *ObjectReference, s diag.Severity, code, consequence string) {
	detail := consequence
	if b.renamed != nil {
		if now, ok := b.renamed(ref.Kind, ref.Name); ok {
			detail = fmt.Sprintf("the build renamed it to %q and did not change the reference: kustomize needs a nameReference configuration "+
				"for kind %s with the field %s of %s", now, ref.Kind, pathSlashes(at), r.ref.Kind)
		}
	}
	r.report(s, at, code, fmt.Sprintf("%s %q, to which %s refers, is not in the render", ref.Kind, ref.Name, r.ref), detail)
}

// pathSlashes writes a path as kustomize's field specifications do.
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

// draft is a pool that is being derived, with its own faults: one error drops
// the pool and not the others.
type draft struct {
	intent.Pool
	machinePool *object[MachinePoolSpec]
	cluster     *cluster
	version     kubernetes
	faults      *faults
	// mp and infra report about the two objects, options about its PoolOptions.
	mp, infra, options reporter
	// broken says that the pool is left out for a fault that was reported elsewhere.
	broken bool
}

// build derives a pool and adds it to the set unless it has an error.
func (b *builder) build(mp *object[MachinePoolSpec], fill func(*draft)) {
	d := &draft{machinePool: mp, faults: &faults{}}
	d.mp = mp.reporter(d.faults)
	d.Key, d.MachinePool = mp.key(), mp.ref()
	t := mp.Spec.Template.Spec
	if t.Version != "" {
		d.version, _ = parseKubernetes(t.Version) // checked before
		d.Version = d.version.text
	}
	d.MinReadySeconds = max(mp.Spec.MinReadySeconds, t.MinReadySeconds)
	if by, ok := mp.Metadata.Annotations[annotationReplicasBy]; ok {
		d.ReplicasManagedExternally = by != "false"
	}
	d.Replicas = replicas(mp, d.mp)
	d.ClusterKey = intent.Key{Namespace: mp.key().Namespace, Name: mp.Spec.ClusterName}
	fill(d)
	b.applyPoolOptions(d)
	d.foreignTypes()
	b.crossCheck(d)
	if !d.faults.hasErrors() && !d.cluster.broken && !d.broken {
		b.set.Pools = append(b.set.Pools, d.Pool)
	}
	b.faults.list = append(b.faults.list, d.faults.list...)
}

// identify sets what both kinds take from their infrastructure object.
func (b *builder) identify(d *draft, infra intent.ObjectRef, meta Meta, kind intent.PoolKind, needsEKS bool) {
	d.Kind, d.Infrastructure = kind, infra
	d.infra = reporter{ref: infra, to: d.faults}
	d.cluster = b.cluster(d.ClusterKey, needsEKS, d.mp)
	d.Paused = isPaused(meta) || isPaused(d.machinePool.Metadata) || d.cluster.paused
	readAnnotations([]annotated{{d.infra, meta}, {d.mp, d.machinePool.Metadata}}, &d.Pool)
}

// bound moves the size into its bounds.
func (d *draft) bound(low, high int32) {
	n := min(max(d.Replicas.Value, low), high)
	if n == d.Replicas.Value {
		return
	}
	if d.Replicas.Written && !d.ReplicasManagedExternally {
		d.mp.warn(path("spec", "replicas"), "replicas-out-of-bounds",
			fmt.Sprintf("spec.replicas is %d, outside the pool's bounds %d to %d; %d is used", d.Replicas.Value, low, high, n), "")
	}
	d.Replicas.Value = n
}

// claimName reports two pools that want one AWS resource.
func (b *builder) claimName(d *draft, kind, name string, at intent.Path) {
	id := kind + " " + name
	if first, taken := b.awsNames[id]; taken && first.ref != d.Infrastructure {
		d.faults.add(Fault{Code: "name-taken", Summary: fmt.Sprintf("%s and %s both want the %s %q", first.ref, d.Infrastructure, kind, name),
			Detail: "AWS knows one of that name in an account and region", Ref: d.Infrastructure, Path: at,
			Related: []RelatedField{{Ref: first.ref, Path: first.path, Message: "the other one"}}})
		return
	}
	b.awsNames[id] = claim{d.Infrastructure, at}
}

// zones are those that the pool's own object names, else the failure domains of
// its MachinePool, for a lookup.
func (d *draft) zones(own []string) string {
	if joined := intent.JoinList(own); joined != "" {
		return joined
	}
	joined := intent.JoinList(d.machinePool.Spec.FailureDomains)
	d.FailureDomains = joined != ""
	return joined
}
