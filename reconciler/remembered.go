package reconciler

// remembered bounds what a scope keeps of each kind of past event. It is far more
// than is under way at a time in one account and region.
const remembered = 10_000

// keep sets m[key] and returns m, and old: what was set since the one before last
// time that m was full is in one of the two. So a process that runs for years keeps
// only recent memories.
func keep[V any](m, old map[string]V, key string, v V, most int) (now, before map[string]V) {
	if _, there := m[key]; !there && len(m) >= most {
		m, old = nil, m
	}
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m, old
}
