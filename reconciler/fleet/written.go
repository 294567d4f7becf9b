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

// Written are renders that outlive the process, one for each target. Any of them may be lost
// at any time: it is made again then. Nothing else may be given than what was put for the
// same target and key by the same program.
type Written interface {
	Get(ctx context.Context, target string, key [sha256.Size]byte) []byte
	// Put gets nil if the newest render has nothing to store.
	Put(ctx context.Context, target string, key [sha256.Size]byte, text []byte)
	// Only forgets all other targets.
	Only(targets []string)
}

// reading bounds how many written renders are read at a time.
var reading = make(chan struct{}, 2)

// recall returns the item's render as an earlier process stored it, if it is valid for the commit:
// all that a render looks up in the tree is the same. Otherwise it returns nil.
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

// write writes a new render of the item down.
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

// unwritable reports whether the render is made with what must not be written down, or is
// nobody's but a reader's.
func unwritable(proposed bool, keyless *sops.Decrypter, secretVars []string) bool {
	return proposed || keyless != nil || len(secretVars) > 0
}

// writtenKey identifies all inputs of the item's render other than the tree and the keys. Keys do
// not matter, as nothing that is stored was encrypted.
func (it *item) writtenKey() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d\n", it.path, whereValuesAre(it.valueFiles), it.valueFiles, it.budget.build().Nodes)
	for _, name := range slices.Sorted(maps.Keys(it.vars)) {
		fmt.Fprintf(h, "%q=%q\n", name, it.vars[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// forgetWritten lets go of the renders of targets that are gone. Where not all targets are
// known, none is.
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
