package current

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// Pulls contains the last report of every open pull request, and of the pull requests that ended last.
type Pulls struct {
	redact report.Redact
	now    func() time.Time
	pages  *live.Watchers

	mu    sync.RWMutex
	byKey map[pullKey]keptPull
}

// pullKey identifies a pull request.
type pullKey struct {
	source string
	number int64
}

// keptPull is the last report of a pull request, and its time.
type keptPull struct {
	report.Pull
	at    time.Time
	bytes int // the size of its plans
}

// keptPulls bounds the merged and closed pull requests that stay on the page.
const keptPulls = 100

// configure forgets the pull requests of sources that are no longer configured.
func (p *Pulls) configure(sources []Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.byKey, func(k pullKey, _ keptPull) bool {
		return !slices.ContainsFunc(sources, func(s Source) bool { return s.Name == k.source })
	})
}

// Update replaces the report of a pull request. It does not block, and does not change next.
func (p *Pulls) Update(next report.Pull) {
	shown := p.redact.Pull(next)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[pullKey{next.Source, next.Number}] = keptPull{shown, p.now(), shown.Bytes()}
	p.boundPlans()
	p.boundEnded()
	p.pages.Changed("")
}

// boundEnded forgets the pull requests that ended first, if there are too many. The caller holds mu.
func (p *Pulls) boundEnded() {
	var ended []pullKey
	for key, k := range p.byKey {
		if k.Ended() {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(x, y pullKey) int {
		return cmp.Or(p.byKey[x].at.Compare(p.byKey[y].at), cmp.Compare(x.source, y.source), cmp.Compare(x.number, y.number))
	})
	for _, key := range ended[:max(0, len(ended)-keptPulls)] {
		delete(p.byKey, key)
	}
}

// boundPlans drops the plans with the oldest reports, if all plans together are too large. The caller
// holds mu.
func (p *Pulls) boundPlans() {
	keys := slices.SortedFunc(maps.Keys(p.byKey), func(x, y pullKey) int { return p.byKey[y].at.Compare(p.byKey[x].at) })
	held := 0
	for i, key := range keys {
		k := p.byKey[key]
		if held += k.bytes; i > 0 && held > report.KeptPlans && k.bytes > 0 {
			held -= k.bytes
			k.Reports, k.Unkept, k.bytes = nil, true, 0
			p.byKey[key] = k
		}
	}
}

// All returns all pull requests, the open ones first, then by source, the newest of each source
// first.
func (p *Pulls) All() []report.Pull {
	p.mu.RLock()
	list := slices.Collect(maps.Values(p.byKey))
	p.mu.RUnlock()
	slices.SortFunc(list, func(x, y keptPull) int {
		return cmp.Or(cmp.Compare(asInt(x.Ended()), asInt(y.Ended())), cmp.Compare(x.Source, y.Source), cmp.Compare(y.Number, x.Number))
	})
	out := make([]report.Pull, len(list))
	for i, k := range list {
		out[i] = k.Pull
	}
	return out
}

// Any reports whether there is a pull request.
func (p *Pulls) Any() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.byKey) > 0
}

// Find returns a pull request, and false if it is unknown.
func (p *Pulls) Find(source string, number int64) (report.Pull, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	k, ok := p.byKey[pullKey{source, number}]
	return k.Pull, ok
}

func asInt(v bool) int {
	if v {
		return 1
	}
	return 0
}
