package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Unclear returns the pools ("namespace/name") whose plan cannot show whether AWS kept weir's
// writes: a rollout is in progress, or the pool cannot be planned.
func Unclear(pools []PoolStatus) map[string]bool {
	unclear := map[string]bool{}
	for _, s := range pools {
		if s.Rollout != nil || s.FailureReason != "" && s.FailureReason != model.CodeNotTaken && s.FailureReason != model.CodeContested {
			unclear[s.Namespace+"/"+s.Name] = true
		}
	}
	return unclear
}

// holdIneffective holds the steps that AWS has accepted often enough without effect, and the steps that
// need a template version from one of them. A step with another change as well runs.
func (c *computation) holdIneffective() {
	if !c.in.Memory.Refusals.HasWrites() {
		return
	}
	waits, ends := map[step.MadeKey]string{}, "a commit that changes the pool, another answer from AWS, or weir reconcile "+c.in.Policy.Target+" --retry"
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Held != "" {
			continue
		}
		all := refusals.WritesOf(*s, c.in.Policy.Target)
		if slices.ContainsFunc(all, func(w refusals.Write) bool { return !c.in.Memory.Refusals.Spent(*s, w) }) {
			continue
		}
		s.Held = step.HeldStopped
		s.HeldReason, s.HeldEnds = c.reportNotTaken(*s), ends
		if content := s.Makes(); content != "" {
			waits[step.MadeKey{Name: s.Name, Content: content}] = s.HeldReason
		}
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if why := waits[s.About().Unmade()]; why != "" && s.Held == "" {
			s.Held, s.HeldReason, s.HeldEnds = step.HeldStopped, why, ends
		}
	}
}

// reportNotTaken adds a diagnostic that names the fields that AWS does not keep. It returns a short
// text.
func (c *computation) reportNotTaken(s step.Step) string {
	what := string(s.Resource) + " " + s.Name
	short := "AWS accepted this for the " + what + ", but it is still due"
	summary := short + ": " + s.Reason
	if len(s.Changes) > 0 {
		short = "AWS accepted this change of the " + what + ", but still returns the old value"
		var fields []string
		for _, ch := range s.Changes {
			fields = append(fields, ch.Field+" as "+model.ValueWords(ch.To)+", and answers "+model.ValueWords(ch.From))
		}
		summary = "AWS accepted for the " + what + " " + strings.Join(fields, "; ")
	}
	if who := c.otherWriter(&s); strings.HasPrefix(who, "another weir") {
		summary += "; it is changed back by " + who
	}
	const detail = "weir does not write it again until AWS returns another value, the pool changes in Git, or somebody runs weir reconcile TARGET --retry; write AWS's value in Git, or find out who changes it back"
	noted := false
	for i := range c.in.Set.Pools {
		pool := &c.in.Set.Pools[i]
		if key := pool.Key.String(); key == s.Pool || slices.Contains(s.Pools, key) {
			noted = true
			var path intent.Path
			if len(s.Changes) > 0 && s.Changes[0].Object == pool.Infrastructure {
				path = s.Changes[0].Path
			}
			c.Note(diag.Error, pool, path, model.CodeNotTaken, summary, detail)
		}
	}
	if !noted { // the resource is no longer in Git
		c.Diags = append(c.Diags, diag.Diagnostic{Severity: diag.Error, Code: model.CodeNotTaken, Summary: summary, Detail: detail})
	}
	return short
}
