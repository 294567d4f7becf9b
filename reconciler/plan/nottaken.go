package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// What AWS takes may read back as something else: a value that it knows under
// another name, a member that it drops, fills or reorders. Such a difference would be
// written again in each pass, and some of that replaces machines. So a change that
// was written, reads back as before, was written again and still does is not written
// a third time (a sixth, where something is made, deleted or rolled out), whatever it
// is, until AWS answers something else, the pool changes in
// Git, or somebody asks for it. A restart forgets it, and costs two more writes.

// codeNotTaken is the diagnostic of a change that AWS takes and does not keep.
const codeNotTaken = "not-taken"

const (
	// mostUnchanged is how often a change is written while AWS goes on answering the
	// same.
	mostUnchanged = 2
	// mostMade is how often something is made, deleted or rolled out: that may be unseen
	// for a while, and is what two weirs undo for each other, which rollout-contested
	// tells before.
	mostMade = 5
	// mostWrites is how often a value is written while AWS answers others, each time
	// another one.
	mostWrites = 5
)

// WriteKey names a change of a target's pool, or of what else owns a step.
type WriteKey struct {
	target, owner string
	what          string // of the action, the resource, the field and the wanted value
}

// Written is what is remembered of one change since AWS last answered what it wrote.
type Written struct {
	// from stands for what AWS answered before the last writes, of which there are
	// unchanged; writes counts all.
	from              string
	unchanged, writes int
	// pool is what Git wanted then.
	pool *intent.Pool
}

// write is a change as it is remembered.
type write struct {
	key    WriteKey
	from   string
	change step.Change
}

// writes are the changes of a step. What is made is one, and so is a step that
// changes no field: that is known by its reason.
func writesOf(s step.Step, target string) []write {
	key := func(more ...[]byte) WriteKey {
		text := strings.Join([]string{fmt.Sprintf("%T", s.Do), string(s.Resource), s.About().EksCluster(), s.Name}, "\x00")
		if content := s.Makes(); content != "" {
			text += "\x00" + content // one of several for pools that share the template
		}
		return WriteKey{target, s.Owner(), content.ShortHash(append(more, []byte(text))...)}
	}
	if s.Verb == step.Create || len(s.Changes) == 0 {
		return []write{{key: key(), from: content.ShortHash([]byte(s.Reason))}}
	}
	out := make([]write, len(s.Changes))
	for i, ch := range s.Changes {
		out[i] = write{key: key([]byte(ch.Field), content.Canonical(ch.To)), from: content.ShortHash(content.Canonical(ch.From)), change: ch}
	}
	return out
}

// spent reports whether a change has been written as often as it may be.
func (m Memory) spent(s step.Step, w write) bool {
	before, known := m.Written[w.key]
	if !known || !before.of(s.Wanted) {
		return false
	}
	most := mostUnchanged
	if s.Makes() != "" || s.Verb == step.Create || s.Verb == step.Delete || s.Rollout != "" {
		most = mostMade
	}
	return before.from == w.from && before.unchanged >= most || w.change.To != nil && before.writes >= mostWrites
}

func (w Written) of(pool *intent.Pool) bool { return w.pool == pool || reflect.DeepEqual(w.pool, pool) }

// Wrote remembers that AWS took a step of a target.
func (m *Memory) Wrote(target string, s step.Step) {
	if m.Written == nil {
		m.Written = map[WriteKey]Written{}
	}
	for _, w := range writesOf(s, target) {
		now := m.Written[w.key]
		if !now.of(s.Wanted) {
			now = Written{}
		}
		if now.from != w.from {
			now.unchanged = 0
		}
		m.Written[w.key] = Written{from: w.from, unchanged: now.unchanged + 1, writes: now.writes + 1, pool: s.Wanted}
	}
}

// WriteAgain forgets what was written for a pool ("namespace/name").
func (m *Memory) WriteAgain(pool string) {
	maps.DeleteFunc(m.Written, func(key WriteKey, _ Written) bool { return key.owner == pool || step.OfLaunchConfig(key.owner) })
}

// ForgetWrites forgets what was written for targets that are not among the known.
func (m *Memory) ForgetWrites(known map[string]bool) {
	maps.DeleteFunc(m.Written, func(key WriteKey, _ Written) bool { return !known[key.target] })
}

// Taken forgets the changes of a target that AWS has come to hold: those that its
// plan no longer asks for. While a rollout moves, or a pool cannot be planned, that a
// change is not asked for says nothing.
func (m *Memory) Taken(target string, p *Plan, pools []PoolStatus) {
	if len(m.Written) == 0 {
		return
	}
	asked := map[WriteKey]bool{}
	for _, s := range p.Steps {
		for _, w := range writesOf(s, target) {
			asked[w.key] = true
		}
	}
	unclear, some := map[string]bool{}, false
	for _, s := range pools {
		if s.Rollout != nil || s.FailureReason != "" && s.FailureReason != codeNotTaken {
			unclear[s.Namespace+"/"+s.Name], some = true, true
		}
	}
	maps.DeleteFunc(m.Written, func(key WriteKey, _ Written) bool {
		return key.target == target && !asked[key] && !unclear[key.owner] && (!some || !step.OfLaunchConfig(key.owner))
	})
}

// notTaken holds the steps that AWS has taken often enough, and what needs a version
// that one of them would make. A step that has something else to change as well runs.
func (c *computation) notTaken() {
	if len(c.in.Memory.Written) == 0 {
		return
	}
	waits := map[step.MadeKey]string{}
	for i := range c.steps {
		s := &c.steps[i]
		if s.Held != "" {
			continue
		}
		all := writesOf(*s, c.in.Policy.Target)
		if slices.ContainsFunc(all, func(w write) bool { return !c.in.Memory.spent(*s, w) }) {
			continue
		}
		s.Held = step.HeldStopped
		s.HeldReason = c.tellNotTaken(*s)
		if content := s.Makes(); content != "" {
			waits[step.MadeKey{Name: s.Name, Content: content}] = s.HeldReason
		}
	}
	for i := range c.steps {
		s := &c.steps[i]
		if why := waits[s.About().Unmade()]; why != "" && s.Held == "" {
			s.Held, s.HeldReason = step.HeldStopped, why
		}
	}
}

// tellNotTaken says which fields AWS does not keep, and returns it in short.
func (c *computation) tellNotTaken(s step.Step) string {
	what := string(s.Resource) + " " + s.Name
	short := "AWS took this for the " + what + " and it is due as before"
	summary := short + ": " + s.Reason
	if len(s.Changes) > 0 {
		short = "AWS took this change of the " + what + " and answers as before"
		var fields []string
		for _, ch := range s.Changes {
			fields = append(fields, ch.Field+" as "+valueWords(ch.To)+", and answers "+valueWords(ch.From))
		}
		summary = "AWS took of the " + what + " " + strings.Join(fields, "; ")
	}
	const detail = "weir does not write it again until AWS answers something else, the pool changes in Git, or somebody asks with weir reconcile TARGET --retry; write in Git what AWS answers, or find who sets it back"
	told := false
	for i := range c.in.Set.Pools {
		pool := &c.in.Set.Pools[i]
		if key := pool.Key.String(); key == s.Pool || slices.Contains(s.Pools, key) {
			told = true
			var path intent.Path
			if len(s.Changes) > 0 && s.Changes[0].Object == pool.Infrastructure {
				path = s.Changes[0].Path
			}
			c.note(diag.Error, pool, path, codeNotTaken, summary, detail)
		}
	}
	if !told { // of what nothing in Git wants any more
		c.diags = append(c.diags, diag.Diagnostic{Severity: diag.Error, Code: codeNotTaken, Summary: summary, Detail: detail})
	}
	return short
}

// noteUnkept says what EC2 keeps otherwise of a version that was made twice for that
// reason. Where it holds more than was asked for, or writes it in other letters, that is
// worth knowing; where it does not hold what Git asks for, the pool is not as Git says.
func (c templates) noteUnkept(pool *intent.Pool, want *wantTemplate, t observed.Template, v observed.TemplateVersion) {
	s, ours := content.DescriptionHashes(v.Description)
	if !ours || s.Confirmed == "" || want.holds(v, s) {
		return
	}
	sev := diag.Warning
	changes := c.templateChanges(pool, v, want.with(v))
	if slices.ContainsFunc(changes, func(ch step.Change) bool {
		return ch.To != nil && !strings.EqualFold(string(content.Canonical(ch.From)), string(content.Canonical(ch.To)))
	}) {
		sev = diag.Error
	}
	c.note(sev, pool, intent.Path{"spec", "awsLaunchTemplate"}, codeNotTaken, "AWS took version "+strconv.FormatInt(v.Number, 10)+" of the launch template "+t.Name+
		" and answers with another content, as for the one before: what it answers → what was written: "+changeWords(changes),
		"the pool stays on that version, and no further one is made; write in Git what AWS answers")
}
