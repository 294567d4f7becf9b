package kust

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/kust/worker"
	"go.yaml.in/yaml/v3"
)

// inOrder sorts objects as kustomize does for kubectl: by type, and then by namespace and name. The
// order of types comes from a run of kustomize with one object of each.
func inOrder(ctx context.Context, nodes []*yaml.Node) error {
	type key struct{ version, kind string }
	keyOf := func(n *yaml.Node) key { return key{text(n, "apiVersion"), text(n, "kind")} }
	ranks := map[key]int{}
	var stubs bytes.Buffer
	for _, n := range nodes {
		if k := keyOf(n); ranks[k] == 0 {
			if strings.ContainsAny(k.version, "_~") {
				return errWhole // kustomize takes some of these for equal to others
			}
			ranks[k] = 1
			fmt.Fprintf(&stubs, "---\napiVersion: %q\nkind: %q\nmetadata: {name: x}\n", k.version, k.kind)
		}
	}
	const kustomization, objects = "kustomization.yaml", "objects.yaml"
	sorted, err := worker.Run(ctx, &worker.Job{
		Root: ".", Small: true, Reads: 10, Bytes: 1 << 20, Nodes: 100 * len(ranks),
		Files: map[string][]byte{kustomization: []byte("resources: [" + objects + "]\n"), objects: stubs.Bytes()},
		Paths: map[string]worker.Path{".": {At: "."}, kustomization: {At: kustomization, File: true}, objects: {At: objects, File: true}},
	}, func(string) worker.Path { return worker.Path{Missing: true} })
	if fault := worker.Fault(""); errors.As(err, &fault) {
		return errWhole // it is about these objects, not those of the build
	}
	if err != nil {
		return err
	}
	for i, n := range sorted {
		ranks[keyOf(n)] = i
	}
	name := func(n *yaml.Node) string {
		return cmp.Or(text(n, "metadata", "namespace"), "~X") + "|" + cmp.Or(text(n, "metadata", "name"), "~N")
	}
	slices.SortStableFunc(nodes, func(a, b *yaml.Node) int {
		return cmp.Or(cmp.Compare(ranks[keyOf(a)], ranks[keyOf(b)]), cmp.Compare(name(a), name(b)))
	})
	return nil
}
