package kust

import (
	"bytes"
	"errors"
	"path"
	"runtime"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust/worker"
	"go.yaml.in/yaml/v3"
)

// reader reads every file of a build once, and refuses files that are not safe for kustomize.
type reader struct {
	findings
	budget
	view  *view
	files map[string]*file // by physical path
	// altered is true if a kustomization does more than list resources.
	altered bool
}

func newReader(v *view) reader {
	return reader{budget: budget{limits: &v.lim}, view: v, files: map[string]*file{}}
}

// yamlFile reads and parses a file once. It returns nil if the file cannot be used.
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

// data reads a file whose bytes become data of an object.
func (r *reader) data(p string, at diag.Position) {
	f := r.dataFile(p, at)
	switch {
	case f == nil:
	case int64(len(f.content)) > r.view.lim.DocumentBytes:
		r.pathFault(p, at, fileTooLarge(p, r.view.lim.DocumentBytes))
	default:
		f.data = true
		r.view.registerLiterals(p)
	}
}

// lfsPointer is the first line of a Git LFS pointer, by the specification of Git LFS.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// batchedBytes is the size from which files most likely contain several batches of objects. If objects are
// altered, workers build batches in parallel. So the reader starts the workers early.
const batchedBytes = 128 << 10

// dataFile reads a file once. It returns nil if the file cannot be read.
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
	if !r.takesBytes(len(content)) {
		return nil
	}
	f := &file{path: p, content: content}
	r.files[p] = f
	return f
}

// envFiles returns the files of a generator's entry that contain key=value lines.
func (r *reader) envFiles(k *kust, entry *yaml.Node) []*file {
	var out []*file
	refs := entries(entry, "envs")
	if _, env := foldedField(entry, "env"); env != nil && env.Kind == yaml.ScalarNode {
		refs = append(refs[:len(refs):len(refs)], env)
	}
	for _, n := range refs {
		if f := r.known(k, deref(n).Value); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// known returns a file that was already read, by a kustomization's reference to it.
func (r *reader) known(k *kust, ref string) *file {
	joined := path.Join(k.dir, ref)
	if path.IsAbs(ref) || joined == ".." || strings.HasPrefix(joined, "../") {
		return nil
	}
	physical, _, err := r.view.resolve(joined)
	if err != nil {
		return nil
	}
	return r.files[physical]
}

// generatorValues returns the values in a generator's entry.
func (r *reader) generatorValues(k *kust, entry *yaml.Node) (out []string) {
	for _, n := range entries(entry, "literals") {
		_, value, _ := strings.Cut(deref(n).Value, "=")
		out = append(out, strings.Trim(value, `"'`))
	}
	for _, n := range entries(entry, "files") {
		ref := deref(n).Value
		if _, file, named := strings.Cut(ref, "="); named {
			ref = file
		}
		if f := r.known(k, ref); f != nil {
			out = append(out, string(f.content))
		}
	}
	for _, f := range r.envFiles(k, entry) {
		for line := range bytes.Lines(f.content) {
			_, value, _ := bytes.Cut(line, []byte("="))
			out = append(out, strings.TrimRight(string(value), "\r\n"))
		}
	}
	return out
}
