package reconciler

import "maps"

// remembered bounds what a scope keeps of each kind of past event. It is far more
// than is under way at a time in one account and region.
const remembered = 10_000

// recent is a map that forgets its oldest keys: it keeps at least the most recently added most keys,
// and at most twice as many. So a process that runs for years keeps only recent memories.
type recent[V any] struct {
	most        int // remembered if 0
	now, before map[string]V
}

func (r *recent[V]) set(key string, v V) {
	most := r.most
	if most == 0 {
		most = remembered
	}
	if _, there := r.now[key]; !there && len(r.now) >= most {
		r.now, r.before = nil, r.now
	}
	if r.now == nil {
		r.now = map[string]V{}
	}
	r.now[key] = v
}

func (r *recent[V]) get(key string) V {
	if v, there := r.now[key]; there {
		return v
	}
	return r.before[key]
}

// all returns a copy of what is remembered.
func (r *recent[V]) all() map[string]V {
	out := make(map[string]V, len(r.now)+len(r.before))
	maps.Copy(out, r.before)
	maps.Copy(out, r.now)
	return out
}
