// Package worker runs kustomize, in a process of its own if the program enables that (Enable).
//
// Other people write the files that a commit or a pull request makes weir build, and kustomize
// knows no limit and cannot be interrupted. Its time grows with the square of the number of
// objects, a patch may double what it copies, and a file of a megabyte can need hours or all
// memory. No check of the files shows beforehand which of them are harmless. So kustomize runs in a
// process that can be ended.
//
// A worker is another process of this program (Serve), started by Enable's process with an
// environment that says when Go collects garbage, and nothing else. It confines itself before it
// reads anything. Limits of the system bound memory, CPU time and open files, a seccomp filter
// leaves a few system calls, and Landlock bounds files, network and signals; and it is the first
// that the kernel ends if memory runs out. If it could not set one of these, it reports that once.
//
// The rules:
//
//   - A worker gets a Job: the files of one build, read, checked and decrypted by weir, and the
//     target of every path. It reads nothing else, and has no key and no credential. It asks weir
//     for any other path that it needs; weir answers from the commit's tree, and records that as it
//     records all reads.
//   - One side sends at a time, in frames of limited length. Neither trusts the other's bytes: each
//     checks sizes, lengths and depth before it allocates memory, and nodes arrive as a tree
//     without aliases.
//   - weir ends a build that is given up, is too long or uses too much by ending its worker. The
//     worker of a small build stays for the next one, unless it has grown. A large build has a new
//     worker, with most of the memory, and only one runs at a time.
//   - A worker ends with the process that started it: its input ends, and Linux sends it a signal.
//
// weir itself does all other work, before and after: it parses the files, reads the files that they
// refer to, puts in variables and decodes the objects. All of these are code of its own or of the
// YAML library. Their time and memory grow with bytes and nodes; both are bounded before and
// counted on the way. Its fuzzers and the hostile trees check that they stay within two seconds of
// CPU time and the memory that the shipped limits leave. So keys and secret values stay in one
// process.
//
// Without Enable a Job runs in this process, with neither limit nor protection, as tests do.
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Job is one run of kustomize, with all that it may read. Paths are those of the
// tree.
type Job struct {
	Root  string            // the directory that kustomize starts in
	Paths map[string]Path   // what a path leads to
	Files map[string][]byte // content by physical path
	// Reads and Bytes bound the number and the size of the files that may be read, each counted as
	// often as kustomize reads it. Nodes bounds the YAML nodes of the objects.
	Reads int
	Bytes int64
	Nodes int
	// Small marks a build that needs little memory: it runs in parallel with a large one. A build
	// that is ended for its memory may be retried as a large one.
	Small bool
	// Spent is the CPU time of all jobs that share it, which is bounded as that of one is.
	Spent *atomic.Int64
	// Unsorted says to leave the objects in the order in which they were read.
	Unsorted bool
}

// Path is the target of a path, links followed.
type Path struct {
	At   string // the physical path
	File bool   // else a directory
	// Missing says that nothing is there, Fault why the answer is not known.
	Missing bool
	Fault   string
}

// Asker answers for a path that a Job does not hold.
type Asker func(path string) Path

// Fault is an error of kustomize, in its own words.
type Fault string

func (f Fault) Error() string { return string(f) }

// ErrNodes says that the objects have more nodes than the Job allows, and ErrReads
// that it reads more. The latter may be within a Fault too.
var (
	ErrNodes = errors.New("the build gives too many YAML nodes")
	ErrReads = errors.New("the build reads too much")
)

// maxDepth bounds the nesting of an object: somewhat more than that of a file.
const maxDepth = 1000

// maxCopied bounds the bytes that the copy operations of one JSON patch may copy.
const maxCopied = 1 << 20

func limitCopies() { jsonpatch.AccumulatedCopySizeLimit = maxCopied }

// Prepare makes kustomize parse its schema of Kubernetes, for a process in which several builds run
// in parallel: kustomize does that once, and then reads it without a lock. It takes some 40 ms and
// much memory. A worker, which makes one build at a time, leaves it to kustomize, which needs the
// schema for strategic merges alone.
var Prepare = sync.OnceFunc(func() {
	limitCopies()
	openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"})
})

// ClusterScoped reports whether kustomize knows a type as one without a namespace. It knows
// those of its schema without parsing it, and looks for others where the schema was parsed.
func ClusterScoped(t kyaml.TypeMeta) bool {
	if enabled.Load() == nil {
		Prepare() // not while a build of this process does
	}
	return openapi.IsCertainlyClusterScoped(t)
}

// Run runs kustomize and returns the objects, in order. Its error is a Fault, ErrNodes, an Ended,
// the cause of ctx's end, or says that no worker is available.
func Run(ctx context.Context, j *Job, ask Asker) ([]*yaml.Node, error) {
	if p := enabled.Load(); p != nil {
		return p.run(ctx, j, ask)
	}
	type answer struct {
		nodes []*yaml.Node
		err   error
	}
	Prepare()
	done := make(chan answer, 1)
	go func() { // kustomize knows no context: it is left, and finds no more files
		nodes, err := kustomize(j, func(path string) Path {
			if ctx.Err() != nil {
				return Path{Fault: context.Cause(ctx).Error()}
			}
			return ask(path)
		})
		if err == nil && !fits(nodes, j.Nodes) {
			nodes, err = nil, ErrNodes
		}
		done <- answer{nodes, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case a := <-done:
		return a.nodes, a.err
	}
}

// kustomize calls kustomize and turns a panic of its into a fault.
func kustomize(j *Job, ask Asker) (nodes []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			nodes, err = nil, Fault(fmt.Sprintf("kustomize panicked: %v", r))
		}
	}()
	opts := krusty.MakeDefaultOptions()
	opts.Reorder = krusty.ReorderOptionUnspecified // as kubectl kustomize does
	if j.Unsorted {
		opts.Reorder = krusty.ReorderOptionNone
	}
	m, err := krusty.MakeKustomizer(opts).Run(&fileSystem{job: j, ask: ask, known: j.Paths}, string(mounted(j.Root)))
	if err != nil {
		return nil, Fault(err.Error())
	}
	for _, r := range m.Resources() {
		if n := r.YNode(); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// fits reports whether objects hold no more than so many nodes and nest no deeper than
// is allowed.
func fits(nodes []*yaml.Node, most int) bool {
	var within func(n *yaml.Node, depth int) bool
	within = func(n *yaml.Node, depth int) bool {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if most--; most < 0 || depth > maxDepth {
			return false
		}
		for _, c := range n.Content {
			if !within(c, depth+1) {
				return false
			}
		}
		return true
	}
	for _, n := range nodes {
		if !within(n, 0) {
			return false
		}
	}
	return true
}
