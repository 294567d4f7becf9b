package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/sops"
)

// Written stores one build of each target for later processes. It may lose a build at any time; the target is
// then rendered again. Get must return only what the same program has put for the same target and key.
type Written interface {
	Get(ctx context.Context, target string, key [sha256.Size]byte) []byte
	// Put gets nil if the newest build must not be stored.
	Put(ctx context.Context, target string, key [sha256.Size]byte, text []byte)
	// Only forgets all other targets.
	Only(targets []string)
}

// reading bounds the stored builds that are read at the same time.
var reading = make(chan struct{}, 2)

// recall returns the build that an earlier process stored, if everything that it read from the tree is the
// same in the commit. Otherwise it returns nil.
func (it *item) recall(ctx context.Context) (*render.Kept, error) {
	if it.written == nil || it.render.result != nil || unwritable(it.proposed, it.keyless, it.secretVars) {
		return nil, nil
	}
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w, err := render.Unpack(it.written.Get(ctx, it.name, it.writtenKey()))
	if err != nil {
		return nil, nil //nolint:nilerr // it is made again
	}
	if same, err := w.Reads.Same(it.view.Snapshot.Tree); err != nil || !same {
		return nil, err
	}
	k, err := w.Keep(it.budget.shared)
	var full *render.FullError
	if errors.As(err, &full) {
		return nil, nil // the render that follows reports the excess
	}
	return k, err
}

// write stores a new build of the item.
func (it *item) write(ctx context.Context, k *render.Kept) {
	if it.written == nil {
		return
	}
	var text []byte
	if !unwritable(it.proposed, it.keyless, it.secretVars) {
		text = k.Pack()
	}
	it.written.Put(ctx, it.name, it.writtenKey(), text)
}

// unwritable reports whether a build must not be stored: it may contain secrets, or is of a proposal.
func unwritable(proposed bool, keyless *sops.Decrypter, secretVars []string) bool {
	return proposed || keyless != nil || len(secretVars) > 0
}

// writtenKey identifies all inputs of the item's render but the tree and the keys. The keys do not matter,
// because builds with decrypted values are not stored.
func (it *item) writtenKey() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d\n", it.path, whereValuesAre(it.valueFiles), it.valueFiles, it.budget.build().Nodes)
	for _, name := range slices.Sorted(maps.Keys(it.vars)) {
		fmt.Fprintf(h, "%q=%q\n", name, it.vars[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// forgetWritten drops the stored builds of removed targets. It drops none if not all targets are known.
func (f *Fleet) forgetWritten(items []*item) {
	if f.o.Written == nil || slices.ContainsFunc(items, func(it *item) bool { return it.unknown }) {
		return
	}
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = it.name
	}
	f.o.Written.Only(names)
}
