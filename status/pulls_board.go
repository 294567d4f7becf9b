package status

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// pullKey names a pull request.
type pullKey struct {
	source string
	number int64
}

// keptPull is a pull request as it was told last, and when.
type keptPull struct {
	Pull
	at    time.Time
	bytes int // that its plans hold
}

// keptPulls bounds the merged and closed pull requests that stay on the page.
const keptPulls = 100

// KeptPlans bounds what the plans of all pull requests may hold that are shown, in
// bytes.
const KeptPlans = 24 << 20

// Pull takes in what is known of a pull request. It neither blocks nor changes p.
func (b *Board) Pull(p Pull) {
	shown := b.redact.pull(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pulls == nil {
		b.pulls = map[pullKey]keptPull{}
	}
	b.pulls[pullKey{p.Source, p.Number}] = keptPull{shown, b.now(), shown.Bytes()}
	b.boundPlans()
	var ended []pullKey
	for key, k := range b.pulls {
		if k.ended() {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(x, y pullKey) int {
		return cmp.Or(b.pulls[x].at.Compare(b.pulls[y].at), cmp.Compare(x.source, y.source), cmp.Compare(x.number, y.number))
	})
	for _, key := range ended[:max(0, len(ended)-keptPulls)] {
		delete(b.pulls, key)
	}
	b.watchers.changed("")
}

// boundPlans lets go of the plans that were told the longest ago, where all of them are
// too much. The caller holds mu.
func (b *Board) boundPlans() {
	keys := slices.SortedFunc(maps.Keys(b.pulls), func(x, y pullKey) int { return b.pulls[y].at.Compare(b.pulls[x].at) })
	held := 0
	for i, key := range keys {
		k := b.pulls[key]
		if held += k.bytes; i > 0 && held > KeptPlans && k.bytes > 0 {
			held -= k.bytes
			k.Reports, k.Unkept, k.bytes = nil, true, 0
			b.pulls[key] = k
		}
	}
}

// Pulls returns the pull requests that are known, the open ones first, of each
// source the newest first.
func (b *Board) Pulls() []Pull {
	b.mu.RLock()
	list := slices.Collect(maps.Values(b.pulls))
	b.mu.RUnlock()
	slices.SortFunc(list, func(x, y keptPull) int {
		return cmp.Or(cmp.Compare(asInt(x.ended()), asInt(y.ended())), cmp.Compare(x.Source, y.Source), cmp.Compare(y.Number, x.Number))
	})
	out := make([]Pull, len(list))
	for i, k := range list {
		out[i] = k.Pull
	}
	return out
}

func (b *Board) pull(source string, number int64) (Pull, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	k, ok := b.pulls[pullKey{source, number}]
	return k.Pull, ok
}

// hasPulls reports whether any pull request is known.
func (b *Board) hasPulls() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.pulls) > 0
}

func (p Pull) ended() bool { return p.State == PullMerged || p.State == PullClosed }

func asInt(v bool) int {
	if v {
		return 1
	}
	return 0
}

type apiPulls struct {
	Pulls []apiPull `json:"pulls"`
}

// apiPull is a pull request with the plans of the targets that it affects, each of
// the schema weir.dev/plan/v1.
type apiPull struct {
	Source   string    `json:"source"`
	Number   int64     `json:"number"`
	Title    string    `json:"title"`
	Author   string    `json:"author"`
	URL      string    `json:"url,omitempty"`
	State    PullState `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	HeadSHA  string    `json:"headSHA"`
	BaseRef  string    `json:"baseRef"`
	BaseSHA  string    `json:"baseSHA,omitempty"`
	MergeSHA string    `json:"mergeSHA,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	// Digests are by target: of a plan with redacted values its own would differ.
	Digests    map[string]string `json:"digests"`
	Approved   string            `json:"approved,omitempty"`
	AsReviewed bool              `json:"asReviewed"`
	Stale      string            `json:"stale,omitempty"`
	PlannedAt  time.Time         `json:"plannedAt,omitzero"`
	Plans      []*plan.Plan      `json:"plans"`
	Gone       []string          `json:"gone"`
	Unaffected int               `json:"unaffected"`
	Differs    []string          `json:"differs"`
	Untold     []string          `json:"untold"`
}

func (w *web) apiPulls(rw http.ResponseWriter, r *http.Request) {
	out := apiPulls{Pulls: []apiPull{}}
	for _, p := range w.board.Pulls() {
		a := apiPull{
			Source: p.Source, Number: p.Number, Title: p.Title, Author: p.Author, URL: safeURL(p.WebURL), State: p.State, Reason: p.Reason,
			HeadSHA: p.HeadSHA, BaseRef: p.BaseRef, BaseSHA: p.BaseSHA, MergeSHA: p.MergeSHA, Digest: p.Digest, Digests: p.Digests, Approved: p.Approved,
			AsReviewed: p.AsReviewed, Stale: p.Stale, PlannedAt: p.PlannedAt, Plans: []*plan.Plan{}, Gone: append([]string{}, p.Gone...),
			Unaffected: p.Unaffected, Differs: append([]string{}, p.Differs...), Untold: append([]string{}, p.Untold...),
		}
		for _, report := range p.Reports {
			if report.Plan != nil {
				a.Plans = append(a.Plans, report.Plan)
			}
		}
		out.Pulls = append(out.Pulls, a)
	}
	w.sendJSON(rw, r, out)
}
