package kust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/standin"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// walker walks the kustomizations that kustomize would reach from a path, before kustomize does, and
// finds all faults in them.
type walker struct {
	reader
	dirs  map[string]*kust // by physical path; nil while its walk is in progress
	order []*kust          // children before parents
	chain []string         // the directories that lead to the current one
}

// file is a file that was read for a build.
type file struct {
	path    string
	content []byte
	docs    []*yaml.Node // roots of the documents, of a YAML file
	parsed  bool
	data    bool // its bytes become data of an object
	// checkedEnv is true after it was checked as a file of key=value lines.
	checkedEnv bool
	broken     bool // nothing in it can be used; this was reported
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
	legacy   bool    // has deprecated fields, for which kustomize prints warnings
	virtual  bool    // made for a path without a kustomization file

	// settings lists the document of the kustomization itself, and after it the documents in its files of
	// replacements, generators and transformers, and in the files of patches that these name.
	settings []*yaml.Node
	// loose lists the patches in configurations of transformers.
	loose []patch
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

// text returns the patch as it is written.
func (p patch) text() []byte {
	if p.inline == nil {
		return p.file.content
	}
	return []byte(p.inline.Value)
}

func newWalker(v *view) *walker {
	return &walker{reader: newReader(v), dirs: map[string]*kust{}}
}

// walk reads everything that a build of p needs. The plan is nil if nothing can be built.
func (w *walker) walk(p string) *buildSpec {
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
	return w.spec(top)
}

// directory walks a directory that is the path of a build. Without a kustomization, its YAML files form
// one. It returns nil after a fault.
func (w *walker) directory(dir string) *kust {
	names, ok := w.kustomizationNames(dir, diag.Position{File: dir})
	if !ok {
		return nil
	}
	if len(names) > 0 {
		return w.kustomization(dir, diag.Position{})
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

// single walks a single file of objects that is the path of a build.
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

// made returns a kustomization for a path that has none. The files are its resources.
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

// kustomizationNames returns the names of the kustomization files of a directory. More than one is a
// fault.
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

// kustomization walks the kustomization in a directory. at is the position of the entry that names it.
func (w *walker) kustomization(dir string, at diag.Position) *kust {
	if len(w.chain) > w.view.lim.Depth {
		if !w.full {
			w.full = true
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
	check := checker{&w.reader, k}
	check.fields()
	w.chain = append(w.chain, dir)
	references{&w.reader, k, w.kustomization}.follow()
	w.chain = w.chain[:len(w.chain)-1]
	check.contents()
	w.dirs[dir] = k
	w.order = append(w.order, k)
	return k
}

// load reads and decodes the kustomization file p of a directory. It returns nil after a fault. at is the
// place of the reference to it.
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
	k.settings = []*yaml.Node{k.doc}
	if err := k.spec.Unmarshal(f.content); err != nil {
		checker{&w.reader, k}.undecodable(err)
		return nil
	}
	return k
}

// within reports whether p is dir or below it.
func within(dir, p string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}
