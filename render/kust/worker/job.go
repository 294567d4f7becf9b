// Package worker runs kustomize, in a separate process if the program enables that (Enable).
//
// Other people write the files of the commits and pull requests that weir builds. kustomize has no limits and
// cannot be interrupted. Its time grows with the square of the number of objects, a patch may double the size
// of its target, and a file of a megabyte can need hours or all memory. No check of the files can predict
// which of them are harmless. So kustomize runs in a process that weir can kill.
//
// A worker is another process of this program (Serve). Its environment only configures Go's garbage
// collector. The worker confines itself before it reads anything. System limits bound memory, CPU time and
// open files. A seccomp filter allows only a few system calls. Landlock restricts files, network and signals.
// If memory runs out, the kernel kills workers first. If the worker could not set one of these restrictions,
// it reports that once.
//
// Rules:
//
//   - A worker gets a Job: the files of one build, which weir has read, checked and decrypted, and the target
//     of every path. It reads nothing else, and has no key and no credential. For any other path it asks
//     weir. weir answers from the commit's tree, and records that like all reads.
//   - One side sends at a time, in frames of limited length. Neither side trusts the other's bytes. Each side
//     checks sizes, lengths and depth before it allocates memory, and nodes are sent as a tree without
//     aliases.
//   - If a build is cancelled, takes too long or uses too much, weir kills its worker. The worker of a small
//     build is reused for the next one, unless it has grown. A large build has a new worker, with most of the
//     memory. Only one large build runs at a time.
//   - A worker ends with the process that started it: its input ends, and Linux sends it a signal.
//
// All other work is done by weir itself, before and after. It parses the files, reads the files that they refer to,
// substitutes variables and decodes the objects. Only its own code and the YAML library do this work. Time
// and memory grow with bytes and nodes. Both are bounded in advance and counted. Fuzz tests and tests with
// hostile trees check that they stay within two seconds of CPU time, and within the memory that the shipped
// limits leave. So keys and secret values stay in one process.
//
// Without Enable, a Job runs in this process, without limits or protection. Tests use this.
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

// Job is one run of kustomize, with everything that it may read. Paths are paths of the tree.
type Job struct {
	Root  string            // the directory in which kustomize starts
	Paths map[string]Path   // the targets of paths
	Files map[string][]byte // content by physical path
	// Reads and Bytes bound the number and size of the files that kustomize may read. A file counts every
	// time. Nodes bounds the YAML nodes of the objects.
	Reads int
	Bytes int64
	Nodes int
	// Small marks a build that needs little memory and may run in parallel with a large one. A build that was
	// killed because of its memory may be retried as a large one.
	Small bool
	// Spent is the total CPU time of all jobs that share it. The limit for one job applies to this sum.
	Spent *atomic.Int64
	// Unsorted keeps the objects in the order in which they were read.
	Unsorted bool
}

// Path is the target of a path after following links.
type Path struct {
	At   string // the physical path
	File bool   // if false, it is a directory
	// Missing means that the path does not exist. Fault is the reason if this is unknown.
	Missing bool
	Fault   string
}

// Asker returns the target of a path that a Job does not have.
type Asker func(path string) Path

// Fault is an error message of kustomize.
type Fault string

func (f Fault) Error() string { return string(f) }

// ErrNodes means that the objects have more nodes than the Job allows. ErrReads means that the build reads
// more than the Job allows; it may also be part of a Fault.
var (
	ErrNodes = errors.New("the build gives too many YAML nodes")
	ErrReads = errors.New("the build reads too much")
)

// maxDepth bounds the nesting of an object. It is somewhat higher than the limit for a file.
const maxDepth = 1000

// maxCopied bounds the bytes that the copy operations of one JSON patch may copy.
const maxCopied = 1 << 20

func limitCopies() { jsonpatch.AccumulatedCopySizeLimit = maxCopied }

// Prepare makes kustomize parse its schema of Kubernetes. This is needed in a process that runs several
// builds in parallel, because kustomize parses it once and then reads it without a lock. It takes about 40 ms
// and much memory. A worker runs one build at a time and does not call Prepare, because kustomize needs the
// schema only for strategic merges.
var Prepare = sync.OnceFunc(func() {
	limitCopies()
	openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"})
})

// ClusterScoped reports whether kustomize knows that a type has no namespace. For types in kustomize's
// built-in list it needs no schema. Other types are found only if the schema was parsed.
func ClusterScoped(t kyaml.TypeMeta) bool {
	if enabled.Load() == nil {
		Prepare() // not while a build of this process does it
	}
	return openapi.IsCertainlyClusterScoped(t)
}

// Run runs kustomize and returns the objects, in order. The error is a Fault, ErrNodes, an Ended, the cause
// of ctx's end, or says that no worker is available.
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
	go func() { // kustomize supports no context, so it keeps running, and finds no more files
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

// kustomize calls kustomize and converts a panic to a fault.
func kustomize(j *Job, ask Asker) (nodes []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			nodes, err = nil, Fault(fmt.Sprintf("kustomize panicked: %v", r))
		}
	}()
	opts := krusty.MakeDefaultOptions()
	opts.Reorder = krusty.ReorderOptionUnspecified // like kubectl kustomize
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

// fits reports whether objects have at most the given number of nodes, and are nested no deeper than
// maxDepth.
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
