package simulate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// pull is a pull request into the branch.
type pull struct {
	number        int
	title, author string
	state         string // open or closed
	draft         bool
	updated       time.Time
	base          head   // what it began at
	commits       []head // its own
	merged        string // the commit that it became
}

func (p *pull) head() string { return p.commits[len(p.commits)-1].revision }

func (p *pull) tree() tree { return p.commits[len(p.commits)-1].tree }

func (p *pull) ref() string { return "refs/pull/" + strconv.Itoa(p.number) + "/head" }

// changed are the pools that it changes.
func (p *pull) changed() (out []string) {
	for key, now := range allKeys(p.base.pools, p.tree().pools) {
		was, had := p.base.pools[key]
		if _, has := p.tree().pools[key]; was != now || had != has {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// proposedTypes are types of machines that pull requests alone write, so that one sees where
// a machine's comes from. Sizes of theirs are from leastProposed on.
var proposedTypes = []string{"c5.large", "c6i.large", "r5.large"}

const leastProposed = 20

// pullHappenings are what people do with pull requests.
var pullHappenings = []happening{
	{7, func(w *World, r *rand.Rand) string { return w.open(r) }},
	{2, func(w *World, r *rand.Rand) string { // one more commit, or another in place of all
		p := w.anyPull(r)
		if p == nil {
			return ""
		}
		next, parent := p.tree().clone(), p.head()
		again := r.IntN(3) == 0
		if again {
			next, parent = p.base.clone(), p.base.revision
			p.commits = nil
		}
		w.propose(r, p, next, parent)
		return fmt.Sprintf("pull request %d is pushed to, force %v", p.number, again)
	}},
	{1, func(w *World, r *rand.Rand) string {
		p := w.anyPull(r)
		if p == nil {
			return ""
		}
		p.draft, p.updated = !p.draft, time.Now()
		w.hook(r, "pull_request", p.event("edited"))
		return fmt.Sprintf("pull request %d: draft %v", p.number, p.draft)
	}},
	{6, func(w *World, r *rand.Rand) string {
		p := w.anyPull(r)
		if p == nil {
			return ""
		}
		return w.press(r, p, []string{"squash", "merge", "rebase"}[r.IntN(3)])
	}},
	{2, func(w *World, r *rand.Rand) string {
		p := w.anyPull(r)
		if p == nil {
			return ""
		}
		p.state, p.updated = "closed", time.Now()
		w.hook(r, "pull_request", p.event("closed"))
		return fmt.Sprintf("pull request %d is closed", p.number)
	}},
	{4, func(w *World, r *rand.Rand) string {
		who := []string{"alice", "alice", "mallory", bot}[r.IntN(4)]
		what := []string{"weir approve", "weir approve", "weir plan", "weir help", "weir merge", "nice"}[r.IntN(6)]
		p := w.anyPull(r)
		if p == nil {
			return ""
		}
		return w.comment(r, p, who, what)
	}},
}

// unapproved: who may not write approves a pull request, and then it is merged.
func unapproved(w *World, r *rand.Rand) string {
	what := w.open(r)
	if what == "" {
		return ""
	}
	p := w.forge.pulls[len(w.forge.pulls)-1]
	w.later(r, 3, 6, func() string { return w.comment(r, p, "mallory", "weir approve") })
	w.later(r, 7, 20, func() string { return w.press(r, p, "merge") })
	return what
}

// comment is what somebody says on a pull request.
func (w *World) comment(r *rand.Rand, p *pull, who, what string) string {
	c := w.forge.write(p.number, who, what)
	if what == "weir approve" && levels[who] != "" {
		w.approved(p)
	}
	w.hook(r, "issue_comment", map[string]any{"action": "created", "is_pull": true, "issue": map[string]any{"number": p.number, "pull_request": map[string]any{}}, "comment": c.json()})
	return fmt.Sprintf("%s comments on pull request %d: %s", who, p.number, what)
}

// press is the button that merges a pull request.
func (w *World) press(r *rand.Rand, p *pull, how string) string {
	if p.state != "open" || !w.merge(p, how) {
		return fmt.Sprintf("pull request %d conflicts", p.number)
	}
	w.hook(r, "push", w.pushed())
	w.hook(r, "pull_request", p.event("closed"))
	return fmt.Sprintf("pull request %d is merged by %s: %s", p.number, how, p.merged[:7])
}

// approved: what a pull request shows may be applied once it is merged, deletions beyond the
// limit included.
func (w *World) approved(p *pull) {
	merged, ok := w.repo.head().merged(p.base.tree, p.tree())
	for _, m := range w.instances {
		if keys := p.changed(); m.reviewed && len(keys) > 0 {
			m.allow(p.tree(), keys...)
		}
		for name, g := range w.groups() {
			if _, wanted := m.wants(merged)[name]; ok && !wanted && value(g.Tags, ownerTag) == m.name {
				m.released[name] = true
			}
		}
	}
}

func (w *World) anyPull(r *rand.Rand) *pull {
	var open []*pull
	for _, p := range w.forge.pulls {
		if p.state == "open" {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[r.IntN(len(open))]
}

// open opens a pull request.
func (w *World) open(r *rand.Rand) string {
	if w.any(r) == "" || w.repo.head().broken {
		return ""
	}
	base := w.repo.head()
	w.forge.numbers++
	p := &pull{number: w.forge.numbers, title: "change", author: "alice", state: "open", base: base}
	w.forge.pulls = append(w.forge.pulls, p)
	w.propose(r, p, base.clone(), base.revision)
	return fmt.Sprintf("pull request %d is opened with %v", p.number, p.changed())
}

// propose adds a commit to a pull request.
func (w *World) propose(r *rand.Rand, p *pull, next tree, parent string) {
	keys := slices.Sorted(maps.Keys(next.pools))
	for range 1 + r.IntN(2) {
		key := keys[r.IntN(len(keys))]
		to := next.pools[key]
		if r.IntN(2) == 0 {
			to.max = leastProposed + r.IntN(200)
		} else {
			to.kind = proposedTypes[r.IntN(len(proposedTypes))]
		}
		next.pools[key] = to
	}
	p.commits = append(p.commits, head{next, w.repo.commit(p.ref(), next, "propose", parent), time.Now()})
	p.updated = time.Now()
	w.hook(r, "pull_request", p.event("synchronized"))
}

// merge merges a pull request as the forge's button does. false: it conflicts.
func (w *World) merge(p *pull, how string) bool {
	on := w.repo.head()
	all, ok := on.merged(p.base.tree, p.tree())
	if !ok {
		return false
	}
	at := on.revision
	switch how {
	case "squash":
		at = w.repo.commit(branch, all, fmt.Sprintf("change (#%d)", p.number), at)
	case "merge":
		at = w.repo.commit(branch, all, fmt.Sprintf("Merge pull request #%d", p.number), at, p.head())
	case "rebase":
		for _, c := range p.commits {
			if all, ok = on.merged(p.base.tree, c.tree); !ok {
				all = on.tree // what a commit takes back on the way
			}
			at = w.repo.commit(branch, all, "propose", at)
		}
	}
	w.repo.moved(all, at)
	p.state, p.merged, p.updated = "closed", at, time.Now()
	return true
}

// hook delivers a webhook, most of the time: some are lost, late or come twice.
func (w *World) hook(r *rand.Rand, event string, what map[string]any) {
	what["repository"] = map[string]any{"full_name": "platform/fleet"}
	text, err := json.Marshal(what)
	if err != nil {
		w.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(canary+"-hook"))
	mac.Write(text)
	w.hooks++
	header := http.Header{"X-Gitea-Event": {event}, "X-Gitea-Delivery": {strconv.Itoa(w.hooks)}, "X-Gitea-Signature": {hex.EncodeToString(mac.Sum(nil))}, "Content-Type": {"application/json"}}
	send := func() {
		for _, m := range w.instances {
			m.post("/hooks/pools", text, header.Clone(), func() {})
		}
	}
	after := time.Duration(r.IntN(3000)) * time.Millisecond
	switch r.IntN(8) {
	case 0, 1: // lost
	case 2:
		w.at(after, send)
		w.at(after+time.Duration(r.IntN(3600))*time.Second, send)
	case 3:
		w.at(time.Duration(r.IntN(3600))*time.Second, send)
	default:
		w.at(after, send)
	}
}

func (p *pull) event(action string) map[string]any {
	return map[string]any{"action": action, "number": p.number, "pull_request": p.json()}
}

func (w *World) pushed() map[string]any {
	return map[string]any{"ref": branch, "after": w.repo.head().revision}
}
