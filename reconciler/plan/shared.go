package plan

import (
	"encoding/binary"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// internChanges makes equal parts of a plan's changes share memory. The pools of a target are much
// alike, and a plan that makes a hundred of them stays in memory until all are made.
func internChanges(steps []step.Step) {
	texts, paths, values := map[string]string{}, map[string]intent.Path{}, map[any]any{}
	var key []byte
	for _, s := range steps {
		for i := range s.Changes {
			c := &s.Changes[i]
			c.Field = first(texts, c.Field, c.Field)
			c.From, c.To = sharedValue(values, c.From), sharedValue(values, c.To)
			key = key[:0]
			for _, name := range c.Path {
				key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
			}
			if p, ok := paths[string(key)]; ok {
				c.Path = p
			} else {
				paths[string(key)] = c.Path
			}
		}
	}
}

// first returns the first value that was stored for a key.
func first[K comparable, V any](of map[K]V, key K, v V) V {
	if known, ok := of[key]; ok {
		return known
	}
	of[key] = v
	return v
}

func sharedValue(values map[any]any, v any) any {
	switch v.(type) {
	case string, float64, int, int32, int64:
		return first(values, v, v)
	}
	return v
}
