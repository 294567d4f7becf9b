package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// holdContested holds the steps that set only fields which somebody else has changed back again and
// again.
func (c *computation) holdContested() {
	if !c.in.Memory.Refusals.HasCorrections() {
		return
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Held != "" {
			continue
		}
		times := 0
		for _, w := range refusals.WritesOf(*s, c.in.Policy.Target) {
			n := c.in.Memory.Refusals.Contested(*s, w, c.in.Now)
			if times = max(times, n); n == 0 {
				times = 0
				break
			}
		}
		if times > 0 {
			s.Held = step.HeldStopped
			s.HeldReason = c.reportContested(*s, times)
			s.HeldEnds = "a commit that changes the pool, six hours without a further correction, or weir reconcile " + c.in.Policy.Target + " --retry"
		}
	}
}

// reportContested adds a diagnostic that names the field and both writers. It returns a short text.
func (c *computation) reportContested(s step.Step, times int) string {
	what := string(s.Resource) + " " + s.Name
	short := "something else changes the " + what + " back"
	field := s.Reason
	if len(s.Changes) > 0 {
		field = model.ChangeWords(s.Changes)
	}
	summary := "weir, at commit " + commitWords(c.in.Commit.Revision) + ", has corrected the " + what + " " + strconv.Itoa(times) + " times (" + field + "), and " + c.otherWriter(&s) + " changed it back every time; weir does not correct it again"
	const detail = "stop the other writer, or write in Git what it sets; CloudTrail says who called AWS"
	noted := false
	for i := range c.in.Set.Pools {
		if pool := &c.in.Set.Pools[i]; pool.Key.String() == s.Owner() {
			noted = true
			c.Note(diag.Error, pool, nil, model.CodeContested, summary, detail)
		}
	}
	if !noted {
		c.Diags = append(c.Diags, diag.Diagnostic{Severity: diag.Error, Code: model.CodeContested, Summary: summary, Detail: detail})
	}
	return short
}

// otherWriter names the other writer of a resource, as far as AWS shows it.
func (c *computation) otherWriter(s *step.Step) string {
	about := s.About()
	tags := c.in.State.Nodegroups[about.Nodegroup].Tags
	if g, is := c.in.State.Groups[about.Group]; is {
		tags = observed.GroupTagValues(g.Tags)
	}
	// A tag with a commit that weir wrote there itself does not show another writer.
	var wrote []string
	for _, w := range refusals.WritesOf(*s, c.in.Policy.Target) {
		if commit, known := c.in.Memory.Refusals.WroteAt(w.Key); known {
			wrote = append(wrote, commit)
		}
	}
	if commit := tags[observed.TagRevision]; commit != "" && len(wrote) > 0 && !slices.Contains(wrote, commit) {
		return "another weir of the instance " + tags[observed.TagOwner] + " at commit " + commitWords(commit) + ", which the tag " + observed.TagRevision + " names"
	}
	who := "a writer that leaves no commit in the tag " + observed.TagRevision + ", such as a person, another tool or a scaling policy"
	if cause := strings.TrimSpace(c.cause(s).Cause); cause != "" {
		who += "; AWS says: " + cause
	}
	return who
}

func commitWords(revision string) string {
	if revision == "" {
		return "(none)"
	}
	return rollout.ShortRevision(revision)
}
