package simulate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/source/transport"
)

// said is what a member said of a commit.
type said struct {
	by, state, text string
	at              time.Time
	// stray: it spoke no more, as it had stood still.
	stray bool
}

// speech is what was said of one commit in one context, of late.
type speech []said

// begins looks at a call that may change AWS, as it is made: the engine says that its member
// owns the account and region, for long enough.
func (w *World) begins(c *call) {
	if w.engine == nil {
		return
	}
	key := membership.ScopeKey("aws", "000000000000", c.region, "")
	o, left, ok := w.engine.owner(key)
	switch {
	case !ok || o.Member != c.daemon.id:
		w.fail("%s begins %s in %s, which %q owns", c.daemon.id, c.name, key, o.Member)
	case left < coord.FenceBegin:
		w.fail("%s begins %s in %s with %v of its lease left", c.daemon.id, c.name, key, left)
	}
}

// speaks looks at a status that a member posts: it speaks for the source, or has done so a
// moment ago, and two members do not say one thing and another by turns.
func (w *World) speaks(d *daemon, sha string, s postedStatus) {
	if w.engine == nil {
		return
	}
	key := sha + " " + s.Context
	delete(w.engine.strays, key)
	if last := w.engine.spoke[d.id]; time.Since(last) > 2*time.Second && w.engine.speaker() != d.id {
		// One that stood still, as it was about to, says it once it goes on; who speaks by
		// then is to read it, and to say again what is true.
		w.engine.strays[key] = true
		if time.Since(d.stood) > 5*time.Second {
			w.fail("%s posts the status %s %q of commit %s, and %q speaks for the source", d.id, s.Context, s.Description, sha[:7], w.engine.speaker())
		}
		w.trace("%s says %s %s %q, which another speaks for", d.id, key, s.State, s.Description)
	}
	list := append(w.engine.said[key], said{d.id, s.State, s.Description, time.Now(), w.engine.strays[key]})
	w.engine.said[key] = list
	if n := len(list); n > 2 {
		a, b, c := list[n-3], list[n-2], list[n-1]
		turns := a.by == c.by && a.by != b.by && a.state == c.state && a.state != b.state
		if turns && !a.stray && !b.stray && !c.stray && c.at.Sub(a.at) < 2*time.Minute {
			w.fail("%s and %s say of commit %s in %s by turns %s %q at %v, %s %q at %v, %q at %v",
				a.by, b.by, sha[:7], s.Context, a.state, a.text, a.at, b.state, b.text, b.at, c.text, c.at)
		}
	}
}

// rereads notes that a member reads the statuses of a commit.
func (w *World) rereads(d *daemon, sha string) {
	if w.engine != nil && w.engine.speaker() == d.id {
		maps.DeleteFunc(w.engine.strays, func(key string, _ bool) bool { return strings.HasPrefix(key, sha) })
	}
}

// strayed: what was said by one who spoke no more is read by who did, or it says nothing new.
func (e *engine) strayed() {
	for _, key := range slices.Sorted(maps.Keys(e.strays)) {
		list := e.said[key]
		last, before := list[len(list)-1], said{state: "success"}
		if len(list) > 1 {
			before = list[len(list)-2]
		}
		if last.state != before.state {
			e.w.fail("%s said %s %q of %s at %v, which another spoke for and has not read since; %s had said %s", last.by, last.state, last.text, key, last.at, before.by, before.state)
		}
	}
}

// sourceKey is that of the lease under which the repository is spoken for.
var sourceKey = membership.SourceKey(transport.ID("http://git.example.com/fleet.git"))

// speaker is the process that speaks for the source, "" for none.
func (e *engine) speaker() string {
	o, _, ok := e.owner(sourceKey)
	if !ok {
		return ""
	}
	return o.Member
}

// owned: each account and region, and the source, has an owner that lives.
func (e *engine) owned() {
	keys := []string{sourceKey}
	for _, region := range e.w.regions() {
		keys = append(keys, membership.ScopeKey("aws", "000000000000", region, ""))
	}
	alive := map[string]bool{}
	for _, m := range e.w.members {
		if m.process != nil {
			alive[m.process.id] = true
		}
	}
	for _, key := range keys {
		if o, left, ok := e.owner(key); !ok || left <= 0 || !alive[o.Member] {
			e.w.fail("at the end nobody owns %s: %+v, %v left", key, o, left)
		}
	}
}

// heeds is how long writes may go on after something was suspended. Each write asks, also one
// of a pass under way; what was accepted by another member is known after two seconds.
const heeds = 5 * time.Second

// asked is how many calls there were that are not the engine's.
func (w *World) asked() int {
	if w.engine == nil {
		return w.step
	}
	return w.step - w.engine.turns
}

// atRest bounds what members ask the engine for while nothing happens: each renews its lease
// and reads what changed.
func (e *engine) atRest(turns int, lasted time.Duration) {
	const most = 120 // for a member and minute
	if n := float64(turns) / lasted.Minutes() / float64(len(e.w.members)); n > most {
		e.w.fail("at rest each member asks the engine %.0f times a minute, and not %d", n, most)
	}
}

// moved notes who speaks, behind each call that may have changed it.
func (e *engine) moved(what string) {
	if !strings.Contains(what, sourceKey) {
		return
	}
	if now := e.speaker(); now != e.speaks {
		if e.speaks != "" {
			e.spoke[e.speaks] = time.Now()
		}
		e.speaks = now
	}
}
