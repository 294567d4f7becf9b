package kust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/standin"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// walker reads everything that kustomize would reach from a path, before
// kustomize does, and collects every fault.
type walker struct {
	reader
	dirs  map[string]*kust // by physical path; nil while its walk is under way
	order []*kust          // children before parents
	chain []string         // directories that led to where the walk is
}

// reader reads the files of a walk, each one once, refuses what is not safe to hand to kustomize,
// and keeps the findings.
type reader struct {
	view  *view
	diags diag.List
	files map[string]*file // by physical path
	nodes int              // YAML nodes that were parsed
	bytes int              // of the files
	crowd crowd            // of their mappings with many keys
	many  many             // of kustomizations with many patches or generators
	// altered says that a kustomization does more than name resources.
	altered bool
	// stuffed says that there are too many nodes: nothing more is parsed.
	stuffed bool
	// small ends a build that turns out not to be small, and then sets large, unless grow permits
	// it to continue as a large one.
	small, large bool
	grow         func() bool
}

// file is a file that was read for a build.
type file struct {
	path    string
	content []byte
	docs    []*yaml.Node // roots of the documents, of a YAML file
	parsed  bool
	data    bool // its bytes become data of an object
	// checkedEnv says that it was checked as a file of key=value lines.
	checkedEnv bool
	broken     bool // nothing of it could be read, which was reported
}

// kust is one kustomization file.
type kust struct {
	dir, file string
	content   []byte
	doc       *yaml.Node
	spec      types.Kustomization

	children []*kust // resources, bases and components
	objects  []*file // files of objects
	patches  []patch
	configs  []*file // builtin transformers and generators in files
	legacy   bool    // has deprecated fields, which kustomize would warn about
	virtual  bool    // made for a path that has no kustomization file

	growth []*yaml.Node // what may hold replacements

	loose []patch // those in configurations of transformers
}

// patch is a patch of a kustomization: a file, or the text of a scalar.
type patch struct {
	file   *file
	inline *yaml.Node // the scalar, nil for a file
	docs   []*yaml.Node
	entry  *yaml.Node // the entry of the kustomization
	target *yaml.Node // its target selector, or nil
}

// location returns the location of the patch's text.
func (p patch) location(k *kust) location {
	if p.inline == nil {
		return location{file: p.file.path, source: p.file.content}
	}
	return location{file: k.file, scalar: p.inline, source: k.content}
}

// text is the patch as it is written.
func (p patch) text() []byte {
	if p.inline == nil {
		return p.file.content
	}
	return []byte(p.inline.Value)
}

func newWalker(v *view) *walker {
	return &walker{reader: reader{view: v, files: map[string]*file{}}, dirs: map[string]*kust{}}
}

// walk reads what a build of p needs. The plan is nil if nothing can be built.
func (w *walker) walk(p string) *plan {
	clean, err := tree.Clean(p)
	if err != nil {
		w.pathFault(p, diag.Position{}, errEscape)
		return nil
	}
	physical, entry, err := w.view.resolve(clean)
	if err != nil {
		w.pathFault(p, diag.Position{}, err)
		return nil
	}
	var top *kust
	if entry.Mode.IsFile() {
		top = w.single(physical)
	} else {
		top = w.directory(physical)
	}
	if top == nil {
		return nil
	}
	return w.plan(top)
}

// directory walks a directory that was given as the path of a build.
func (w *walker) directory(dir string) *kust {
	names, ok := w.kustomizationNames(dir, diag.Position{File: dir})
	if !ok {
		return nil
	}
	if len(names) > 0 {
		return w.kustomization(dir, diag.Position{}, nil)
	}
	yamls, err := w.view.list(dir)
	if err != nil {
		return nil
	}
	if len(yamls) == 0 {
		w.add("kustomization-missing", diag.Position{File: dir}, "the directory has no kustomization and no YAML file",
			"Give the directory of a kustomization.yaml, a directory of *.yaml files, or one file.")
		return nil
	}
	return w.made(dir, yamls)
}

// single walks a build of one file of objects.
func (w *walker) single(p string) *kust {
	name := path.Base(p)
	for _, n := range konfig.RecognizedKustomizationFileNames() {
		if name == n {
			w.add("bad-path", diag.Position{File: p}, "the path is a kustomization file",
				"Give the directory that contains it.")
			return nil
		}
	}
	return w.made(path.Dir(p), []string{name})
}

// made is the kustomization of a path that has none: its files are the resources.
func (w *walker) made(dir string, names []string) *kust {
	k := &kust{
		dir: dir, file: path.Join(dir, konfig.DefaultKustomizationFileName()), virtual: true,
		doc: &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"},
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, name := range names {
		p := path.Join(dir, name)
		physical, entry, err := w.view.resolve(p)
		switch {
		case err != nil:
			w.pathFault(p, diag.Position{File: p}, err)
			continue
		case entry.Mode == tree.Dir:
			continue // a symlink to a directory
		case !within(dir, physical):
			w.outsideRoot(p, diag.Position{File: p})
			continue
		}
		if f := w.yamlFile(physical, diag.Position{File: p}); f != nil {
			k.objects = append(k.objects, f)
			w.checkObjects(f)
		}
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "./" + name})
	}
	k.doc.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "resources"}, list}
	w.order = append(w.order, k)
	return k
}

// kustomizationNames returns which of the names that kustomize knows a directory
// has. More than one is a fault: an unexpected second file would decide silently.
func (w *walker) kustomizationNames(dir string, at diag.Position) ([]string, bool) {
	var names []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		_, entry, err := w.view.resolve(path.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			w.pathFault(path.Join(dir, name), at, err)
			return nil, false
		case entry.Mode.IsFile():
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		w.add("kustomization-duplicate", diag.Position{File: path.Join(dir, names[1])},
			fmt.Sprintf("the directory has more than one kustomization: %s", strings.Join(names, ", ")), "Keep one of them.")
		return nil, false
	}
	return names, true
}

// kustomization walks the kustomization of a directory that an entry at a
// position names.
func (w *walker) kustomization(dir string, at diag.Position, _ []string) *kust {
	if len(w.chain) > w.view.lim.Depth {
		if !w.stuffed {
			w.stuffed = true
			w.report(tooLarge(at, fmt.Sprintf("bases nest deeper than %d levels", w.view.lim.Depth)))
		}
		return nil
	}
	for _, d := range w.chain {
		if within(dir, d) {
			w.add("kustomization-cycle", at, fmt.Sprintf("%s contains %s, which leads to it", dir, d),
				"A base must not be, or contain, a directory that uses it.")
			return nil
		}
	}
	if k, ok := w.dirs[dir]; ok {
		return k
	}
	w.dirs[dir] = nil
	names, ok := w.kustomizationNames(dir, at)
	if !ok {
		return nil
	}
	if len(names) == 0 {
		w.add("kustomization-missing", at, fmt.Sprintf("%s has no kustomization file", dir),
			"Add a kustomization.yaml there, or name the files one by one.")
		return nil
	}
	p := path.Join(dir, names[0])
	physical, _, err := w.view.resolve(p)
	if err != nil {
		w.pathFault(p, at, err)
		return nil
	}
	if !within(dir, physical) {
		w.outsideRoot(p, at)
		return nil
	}
	k := w.load(dir, physical, at)
	if k == nil {
		return nil
	}
	w.chain = append(w.chain, dir)
	w.fields(k, nil)
	w.chain = w.chain[:len(w.chain)-1]
	w.inspect(k)
	w.dirs[dir] = k
	w.order = append(w.order, k)
	return k
}

// load reads and decodes a kustomization file.
func (w *walker) load(dir, p string, at diag.Position) *kust {
	f := w.yamlFile(p, at)
	if f == nil {
		return nil
	}
	k := &kust{dir: dir, file: p, content: f.content}
	switch line := bytes.Count(f.content[:max(0, standin.Index(f.content))], []byte("\n")) + 1; {
	case f.broken:
		return nil
	case standin.Index(f.content) >= 0:
		w.add("secret-in-name", diag.Position{File: p, Line: line}, "the kustomization has an encrypted value",
			"A kustomization decides how everything is built. Encrypt only the files with secrets.")
		return nil
	case len(f.docs) == 0:
		w.add("kustomization-invalid", diag.Position{File: p}, "the kustomization is empty", "Give it at least one field, such as resources.")
		return nil
	case len(f.docs) > 1:
		w.add("kustomization-invalid", diag.Position{File: p, Line: f.docs[1].Line}, "the kustomization has more than one document",
			"kustomize reads only the first; keep that one.")
		return nil
	case f.docs[0].Kind != yaml.MappingNode:
		w.add("kustomization-invalid", diag.Position{File: p, Line: f.docs[0].Line}, "the kustomization is not a mapping", "")
		return nil
	}
	k.doc = f.docs[0]
	w.altered = w.altered || doesMore(k.doc)
	k.growth = []*yaml.Node{k.doc}
	if err := k.spec.Unmarshal(f.content); err != nil {
		w.undecodable(k, err)
		return nil
	}
	return k
}

// within reports whether p is dir or below it.
func within(dir, p string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

func (w *walker) outsideRoot(written string, at diag.Position) {
	w.add("path-escape", at, fmt.Sprintf("%s is not in or below the directory of the kustomization that names it", written),
		"Files must be below the kustomization; to share one, give its directory a kustomization and use that as a base.")
}

// yamlFile reads and parses a file once; nil if it cannot be used.
func (r *reader) yamlFile(p string, at diag.Position) *file {
	f := r.dataFile(p, at)
	if f == nil || f.parsed {
		return f
	}
	f.parsed = true
	before := len(r.diags)
	docs, ok := r.parse(f.content, location{file: p})
	f.docs = docs
	if !ok && len(docs) == 0 && len(r.diags) > before {
		f.broken = true
	}
	return f
}

// data reads a file that becomes data of an object.
func (r *reader) data(p string, at diag.Position) {
	f := r.dataFile(p, at)
	switch {
	case f == nil:
	case int64(len(f.content)) > r.view.lim.DocumentBytes:
		r.pathFault(p, at, fileTooLarge(p, r.view.lim.DocumentBytes))
	default:
		f.data = true
		r.view.becomesText(p)
	}
}

// lfsPointer is the first line of a file whose content is in Git LFS, as its specification says.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// batchedBytes is the size from which files most likely hold several batches of objects. Workers
// build these in parallel if the objects are altered.
const batchedBytes = 128 << 10

// dataFile reads a file once; nil if it cannot be read.
func (r *reader) dataFile(p string, at diag.Position) *file {
	if f, ok := r.files[p]; ok {
		return f
	}
	if r.large {
		return nil
	}
	content, err := r.view.read(p)
	if err != nil && !errors.Is(err, errPointer) {
		if !at.Known() {
			at.File = p
		}
		r.pathFault(p, at, err)
		return nil
	}
	if err != nil || bytes.HasPrefix(content, []byte(lfsPointer)) {
		r.add("lfs-pointer", diag.Position{File: p, Line: 1, Column: 1}, "the file is a Git LFS pointer; its content is not in the commit",
			"weir reads the contents of the commit. Keep the file in Git itself: \"git lfs untrack\" it and commit it again.")
		return nil
	}
	if r.altered && r.bytes <= batchedBytes && r.bytes+len(content) > batchedBytes {
		worker.Ahead(runtime.GOMAXPROCS(0))
	}
	if r.bytes += len(content); r.small && r.bytes > smallBytes && !r.grow() {
		r.large = true
		return nil
	}
	f := &file{path: p, content: content}
	r.files[p] = f
	return f
}
