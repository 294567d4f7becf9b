package current

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/status/report"
)

// pullKey names a pull request.
type pullKey struct {
	source string
	number int64
}

// keptPull is the last report of a pull request, and its time.
type keptPull struct {
	report.Pull
	at    time.Time
	bytes int // that its plans hold
}

// keptPulls bounds the merged and closed pull requests that stay on the page.
const keptPulls = 100

// Pull takes in the report of a pull request. It neither blocks nor changes p.
func (b *State) Pull(p report.Pull) {
	shown := b.redact.Pull(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pulls == nil {
		b.pulls = map[pullKey]keptPull{}
	}
	b.pulls[pullKey{p.Source, p.Number}] = keptPull{shown, b.Now(), shown.Bytes()}
	b.boundPlans()
	var ended []pullKey
	for key, k := range b.pulls {
		if k.Ended() {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(x, y pullKey) int {
		return cmp.Or(b.pulls[x].at.Compare(b.pulls[y].at), cmp.Compare(x.source, y.source), cmp.Compare(x.number, y.number))
	})
	for _, key := range ended[:max(0, len(ended)-keptPulls)] {
		delete(b.pulls, key)
	}
	b.watchers.Changed("")
}

// boundPlans drops the plans with the oldest reports, where all of them are too much.
// The caller holds mu.
func (b *State) boundPlans() {
	keys := slices.SortedFunc(maps.Keys(b.pulls), func(x, y pullKey) int { return b.pulls[y].at.Compare(b.pulls[x].at) })
	held := 0
	for i, key := range keys {
		k := b.pulls[key]
		if held += k.bytes; i > 0 && held > report.KeptPlans && k.bytes > 0 {
			held -= k.bytes
			k.Reports, k.Unkept, k.bytes = nil, true, 0
			b.pulls[key] = k
		}
	}
}

// Pulls returns the pull requests that are known, the open ones first, of each
// source the newest first.
func (b *State) Pulls() []report.Pull {
	b.mu.RLock()
	list := slices.Collect(maps.Values(b.pulls))
	b.mu.RUnlock()
	slices.SortFunc(list, func(x, y keptPull) int {
		return cmp.Or(cmp.Compare(asInt(x.Ended()), asInt(y.Ended())), cmp.Compare(x.Source, y.Source), cmp.Compare(y.Number, x.Number))
	})
	out := make([]report.Pull, len(list))
	for i, k := range list {
		out[i] = k.Pull
	}
	return out
}

func (b *State) FindPull(source string, number int64) (report.Pull, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	k, ok := b.pulls[pullKey{source, number}]
	return k.Pull, ok
}

func asInt(v bool) int {
	if v {
		return 1
	}
	return 0
}
