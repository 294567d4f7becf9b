package current

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/forge"
)

// Sources returns all sources by name.
func (b *State) Sources() []Source {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := slices.SortedFunc(maps.Values(b.sources), func(x, y Source) int { return cmp.Compare(x.Name, y.Name) })
	for i := range out {
		// A secret may have become known since.
		out[i].Subject, out[i].Error = b.redact.Text(out[i].Subject), b.redact.Text(out[i].Error)
	}
	return out
}

// Targets returns all targets by name.
func (b *State) Targets() []TargetState {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.SortedFunc(maps.Values(b.targets), func(x, y TargetState) int { return cmp.Compare(x.Name, y.Name) })
}

// Target returns one target, false if the state does not know it.
func (b *State) Target(name string) (TargetState, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t, ok := b.targets[name]
	return t, ok
}

// Pools returns the pools of all targets, by target, namespace and name.
func (b *State) Pools() []plan.PoolStatus {
	out := []plan.PoolStatus{}
	for _, t := range b.Targets() {
		out = append(out, t.Pools...)
	}
	slices.SortStableFunc(out, func(x, y plan.PoolStatus) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// Links returns the links of a source, none for an unknown one.
func (b *State) Links(source string) forge.Links {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.sources[source].Links()
}

// LaunchConfigs returns the AWSLaunchConfigs of all targets, by target, namespace
// and name.
func (b *State) LaunchConfigs() []plan.LaunchConfigStatus {
	out := []plan.LaunchConfigStatus{}
	for _, t := range b.Targets() {
		out = append(out, t.LaunchConfigs...)
	}
	slices.SortStableFunc(out, func(x, y plan.LaunchConfigStatus) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// Configured reports whether the state knows which sources and targets there are.
func (b *State) Configured() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.configured
}
