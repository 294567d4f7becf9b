package build

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// What a build costs is worked out before kustomize runs, for nothing can stop
// kustomize once it does: its time grows with the square of the number of
// objects, of the keys of one mapping and of the entries of one generator, and a
// file of a megabyte can ask for hours. The sums here are rough, but they grow
// as kustomize does, so that what they let pass ends within the time of a build
// and below 256 MiB, and what they refuse is refused at once. Measured with
// kustomize's api v0.21: a node takes some 700 bytes, from the walk to the result.
const (
	// maxSteps is how much work a build may be, in steps of some 0.3 µs, but for
	// comparing its objects with each other: less than the default time of a build.
	maxSteps = 60_000_000
	// maxCompared is how much of that may come on top: 2,000 pools of two objects each,
	// in a base and an overlay, are some 270 million.
	maxCompared = 400_000_000
)

// load is the size of a set of objects, or of one of them. Sums stop at sizeCap.
type load struct {
	count int // objects
	nodes int // YAML nodes, aliases expanded
	bytes int // of all scalars, aliases expanded
	head  int // fields that tell what an object is, annotations included: kustomize reads them to compare two objects
	refs  int // fields that may hold the name of another object
	most  int // nodes of the largest object
}

func (l *load) add(o load) {
	l.count = min(l.count+o.count, sizeCap)
	l.nodes = min(l.nodes+o.nodes, sizeCap)
	l.bytes = min(l.bytes+o.bytes, sizeCap)
	l.head = min(l.head+o.head, sizeCap)
	l.refs = min(l.refs+o.refs, sizeCap)
	l.most = max(l.most, o.most)
}

// grow adds something of a size to every object of a set of which the load has
// count objects.
func (l *load) grow(count, nodes, bytes int) {
	if count == 0 {
		return
	}
	l.nodes = plus(l.nodes, times(count, nodes))
	l.bytes = plus(l.bytes, times(count, bytes))
	l.most = plus(l.most, nodes)
}

func plus(a, b int) int { return min(a+b, sizeCap) }

// times multiplies without overflow.
func times(a, b int) int {
	if a > 0 && b > sizeCap/a {
		return sizeCap
	}
	return a * b
}

// work is what a build of a kustomization takes, its children included.
type work struct {
	all    load
	byKind map[string]load
	visits int // files that kustomize reads
	steps  int
	// compared are the steps that comparing all objects with each other takes.
	compared int
	renames  int // nested kustomizations that give new names
	// referring are the fields that own configurations say hold names.
	referring []reference
}

// kind is the load that a pattern for a kind may match; "" matches all.
func (t *work) kind(pattern string) load {
	if pattern == "" || strings.ContainsAny(pattern, `.*+?[](){}|^$\`) {
		return t.all
	}
	return t.byKind[pattern]
}

func (t *work) spend(steps ...int) {
	for _, s := range steps {
		t.steps = plus(t.steps, s)
	}
}

func (t *work) object(kind string, l load) {
	t.all.add(l)
	k := t.byKind[kind]
	k.add(l)
	t.byKind[kind] = k
}

// grow adds to the objects of a kind, which it may not know.
func (t *work) grow(kind string, count, nodes, bytes int) {
	t.all.grow(count, nodes, bytes)
	if k, ok := t.byKind[kind]; ok {
		k.grow(count, nodes, bytes)
		t.byKind[kind] = k
		return
	}
	for name, k := range t.byKind {
		k.grow(min(count, k.count), nodes, bytes)
		t.byKind[name] = k
	}
}

// bound refuses trees that are small on disk and large when built: kustomize
// builds a base once for each time that it is named, applies a patch to every
// object that its target selects, compares all objects with each other, and lets
// a replacement copy a field into itself.
func (w *walker) bound(top *kust) {
	for _, k := range w.order {
		w.measure(k)
	}
	lim := w.view.lim
	at := diag.Position{File: top.file}
	t := &top.work
	t.spend(times(t.all.refs, times(t.all.count, 20)))
	if w.small && (t.all.nodes > smallNodes || t.all.bytes > smallBytes || plus(t.steps, t.compared) > smallSteps) {
		w.large = true
		return
	}
	if t.visits > lim.Files {
		w.report(tooLarge(at, fmt.Sprintf("the build reads more than %d files, bases counted as often as they are included", lim.Files)))
	}
	if t.all.count > lim.Objects {
		w.report(tooLarge(at, fmt.Sprintf("the build holds more than %d objects", lim.Objects)))
	}
	if t.all.nodes > lim.Nodes {
		w.report(tooManyNodes(at, fmt.Sprintf("the build holds %d YAML nodes, patches counted as often as they may apply", t.all.nodes), lim.Nodes))
	}
	if int64(t.all.bytes) > lim.TotalBytes {
		w.report(tooLarge(at, fmt.Sprintf("the build holds more than %d bytes, patches counted as often as they may apply", lim.TotalBytes)))
	}
	if (t.steps > maxSteps || t.compared > maxCompared) && t.all.count <= lim.Objects && t.all.nodes <= lim.Nodes {
		w.report(tooLarge(at, fmt.Sprintf("kustomize would need too long for %d objects of %d YAML nodes with these patches and generators", t.all.count, t.all.nodes)))
	}
	w.boundReplacements(top)
}

// measure works out what a build of k takes; its children are measured already.
func (w *walker) measure(k *kust) {
	t := &k.work
	*t = work{byKind: map[string]load{}, visits: 1 + len(k.objects) + len(k.patches)}
	for _, f := range k.configs {
		t.referring = append(t.referring, references(f.docs)...)
	}
	for _, ref := range k.spec.Configurations {
		if f := w.known(k, ref); f != nil {
			t.referring = append(t.referring, references(f.docs)...)
		}
	}
	for _, f := range k.objects {
		for _, doc := range f.docs {
			t.documents(doc)
		}
	}
	for _, c := range k.children {
		t.visits = plus(t.visits, c.work.visits)
		t.spend(c.work.steps)
		t.compared = plus(t.compared, c.work.compared)
		t.referring = append(t.referring, c.work.referring...)
		t.renames = max(t.renames, c.work.renames)
		for kind, l := range c.work.byKind {
			t.object(kind, l)
		}
	}
	if len(t.referring) > 0 {
		t.spend(times(t.all.count, len(t.referring)))
		if t.steps <= maxSteps {
			t.all.refs = plus(t.all.refs, named(k, t.referring, map[*kust]int{}))
		}
	}
	w.measureGenerators(k)
	for _, p := range k.patches {
		t.patch(p)
	}
	for _, p := range k.loose {
		t.patch(p)
	}
	w.measureFields(k)
	// Every level compares each of its objects with all others, by all the names
	// that they had.
	t.compared = plus(t.compared, times(t.all.count, plus(t.all.head, times(t.all.count, t.renames))))
}

// documents adds the objects of a document, which may be a list of objects.
func (t *work) documents(doc *yaml.Node) {
	kind := text(doc, "kind")
	if _, items := field(doc, "items"); items != nil && items.Kind == yaml.SequenceNode && strings.HasSuffix(kind, "List") {
		for _, item := range items.Content {
			t.object(text(item, "kind"), objectLoad(deref(item)))
		}
		return
	}
	t.object(kind, objectLoad(doc))
}

func objectLoad(doc *yaml.Node) load {
	nodes, bytes := expanded(doc)
	l := load{count: 1, nodes: nodes, bytes: bytes, most: nodes, head: len(contentOf(doc)) / 2}
	if _, meta := field(doc, "metadata"); meta != nil {
		l.head += len(meta.Content) / 2
		for _, name := range []string{"annotations", "labels"} {
			_, m := field(meta, name)
			l.head += len(contentOf(m)) / 2
		}
	}
	group, _, _ := strings.Cut(text(doc, "apiVersion"), "/")
	if !strings.HasSuffix(group, "cluster.x-k8s.io") {
		for i, c := range contentOf(doc) {
			if i%2 == 1 && deref(doc.Content[i-1]).Value != "metadata" {
				l.refs = plus(l.refs, nameFields(c, map[*yaml.Node]int{}))
			}
		}
	}
	return l
}

// patch adds what a patch takes and what it may add.
func (t *work) patch(p patch) {
	nodes, bytes := 0, 0
	for _, doc := range p.docs {
		n, b := expanded(doc)
		nodes, bytes = plus(nodes, n), plus(bytes, b)
	}
	t.spend(t.all.head, nodes)
	if p.target != nil {
		kind := folded(p.target, "kind")
		hit := t.kind(kind)
		// The object is written to JSON and back, and lists are searched for each
		// element of the patch.
		t.spend(times(hit.nodes, 4), times(hit.nodes, nodes/16))
		t.grow(kind, hit.count, nodes, bytes)
		return
	}
	for _, doc := range p.docs {
		kind := text(doc, "kind")
		hit := t.kind(kind)
		size, b := expanded(doc)
		t.spend(times(hit.most, 1+size/16))
		t.grow(kind, min(1, hit.count), size, b)
	}
}

// measureFields adds what the other fields of a kustomization take.
func (w *walker) measureFields(k *kust) {
	t := &k.work
	n := t.all.count
	for _, set := range pairSets(k.doc) {
		nodes, bytes := expanded(set)
		t.grow("", n, 2*nodes, 2*bytes)
		t.all.head = plus(t.all.head, times(n, nodes/2))
		t.spend(times(n, nodes), times(n, times(nodes, nodes)/128))
	}
	for _, name := range []string{"namePrefix", "nameSuffix", "namespace"} {
		if v := folded(k.doc, name); v != "" {
			t.renames++
			t.grow("", n, 0, 4*len(v))
			t.spend(t.all.nodes)
		}
	}
	t.spend(times(len(entries(k.doc, "images")), t.all.nodes), times(len(entries(k.doc, "replicas")), t.all.head))
	for _, doc := range k.growth {
		for _, r := range replacementsIn(doc) {
			size := w.copied(r)
			for _, target := range r.targets {
				hit := t.kind(target.sel.kind)
				t.spend(times(t.all.head, 8), times(hit.nodes, len(target.paths)))
				t.grow(target.sel.kind, hit.count, times(size.nodes, len(target.paths)), times(size.bytes, len(target.paths)))
			}
		}
		if doc != k.doc {
			nodes, _ := expanded(doc)
			t.spend(t.all.nodes, times(t.all.head, nodes))
		}
	}
}

// expanded counts the nodes of a document and the bytes of its scalars with
// aliases expanded. The vetting has made sure that it ends.
func expanded(n *yaml.Node) (nodes, bytes int) {
	var known map[*yaml.Node][2]int
	var count func(n *yaml.Node) [2]int
	count = func(n *yaml.Node) [2]int {
		if size, ok := known[n]; ok {
			return size
		}
		size := [2]int{1, len(n.Value)}
		if n.Kind == yaml.AliasNode {
			a := count(n.Alias)
			return [2]int{plus(1, a[0]), a[1]}
		}
		for _, c := range n.Content {
			s := count(c)
			size[0], size[1] = plus(size[0], s[0]), plus(size[1], s[1])
		}
		if n.Anchor != "" {
			if known == nil {
				known = map[*yaml.Node][2]int{}
			}
			known[n] = size
		}
		return size
	}
	size := count(n)
	return size[0], size[1]
}

// measureGenerators adds the objects that generators make.
func (w *walker) measureGenerators(k *kust) {
	t := &k.work
	add := func(kind string, entry *yaml.Node) {
		_, bytes := expanded(entry)
		keys := len(entries(entry, "literals")) + len(entries(entry, "files"))
		for _, n := range entries(entry, "files") {
			ref := deref(n).Value
			if _, file, ok := strings.Cut(ref, "="); ok {
				ref = file
			}
			if f := w.known(k, ref); f != nil {
				bytes = plus(bytes, len(f.content))
			}
		}
		for _, f := range w.envFiles(k, entry) {
			bytes = plus(bytes, len(f.content))
			keys += strings.Count(string(f.content), "\n") + 1
		}
		nodes := 16 + 2*keys
		t.object(kind, load{count: 1, nodes: nodes, bytes: bytes, head: 6, most: nodes})
		t.spend(times(keys, keys)/16, times(t.all.head, 2))
	}
	for _, entry := range entries(k.doc, "configMapGenerator") {
		add("ConfigMap", deref(entry))
	}
	for _, entry := range entries(k.doc, "secretGenerator") {
		add("Secret", deref(entry))
	}
	for _, doc := range k.growth {
		if kind := text(doc, "kind"); doc != k.doc && (kind == "ConfigMapGenerator" || kind == "SecretGenerator") {
			add(strings.TrimSuffix(kind, "Generator"), doc)
		}
	}
}
