package app

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Each member's page and API have the pull requests of the one that speaks for their source: its plan, who approved it, how it ended, also for a
// member that starts later or has taken over. At rest none of that is written.
func TestAnyMemberShowsPullRequests(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	s.forge.levels["reviewer"] = "write"
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	s.owned(s.source(), a)
	eventually(t, "the first plan", func() string {
		if r, _ := a.current.Targets.Find("prod"); r.Last == nil || r.Last.Plan == nil || r.Last.Plan.Empty() {
			return "there is no plan"
		}
		return ""
	})
	approveNow(t, a.App)
	converged(t, b.App, first, 1)
	same := func(than *member, what string, want ...string) string {
		t.Helper()
		var text string
		eventually(t, what, func() string {
			text = than.get(t, "/api/v1/pulls", nil)
			for _, w := range want {
				if !strings.Contains(text, w) {
					return fmt.Sprintf("%s is not in %s", w, text)
				}
			}
			if other := b.get(t, "/api/v1/pulls", nil); other != text {
				return fmt.Sprintf("one member shows %s, the other %s", text, other)
			}
			return ""
		})
		return text
	}
	head := s.propose(1, overlay(map[string]string{"web": pool("web", "m5.xlarge", 3)}))
	s.told(head, "fleet/plan", "success", "")
	same(a, "the plan", `"number": 1`, head, `"to": "m5.xlarge"`, `"digest"`, `"file": "`)
	// The page too, down to what becomes of the instances.
	moments := regexp.MustCompile(`(?s)<header.*?</header>|<footer.*?</footer>|<time.*?</time>|nonce="[^"]*"|https?://127[^"/]*`)
	page := func(m *member) string {
		text := m.get(t, "/pulls/pools/1", nil)
		from, to := strings.Index(text, "<main"), strings.Index(text, "</main>")
		return moments.ReplaceAllString(text[from:to], "")
	}
	if x, y := page(a), page(b); x != y || !strings.Contains(x, "replaces") {
		t.Errorf("one member's page has\n%s\nthe other's\n%s", x, y)
	}
	s.commented(1)
	s.forge.say(1, "reviewer", "weir approve")
	shown := same(a, "the approval", `"approved": "reviewer"`)

	// Nothing more is written while nothing happens.
	version := func() (out []int64) {
		for _, r := range b.member.Mirror.Snapshot().List("pull/") {
			out = append(out, r.Version)
		}
		return out
	}
	before := version()
	for range 3 {
		a.gen.Load().publisher.review.watcher("pools").Changed(1)
		time.Sleep(300 * time.Millisecond)
	}
	if now := version(); len(before) == 0 || fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("records of pull requests at rest: %v, then %v", before, now)
	}

	// A member that begins has them from the records, and so has who takes over.
	a.stop()
	s.owned(s.source(), b)
	if got := b.get(t, "/api/v1/pulls", nil); !strings.Contains(got, `"to": "m5.xlarge"`) {
		t.Errorf("taken over, it shows %s, before %s", got, shown)
	}
	a = s.member("a")
	defer a.stop()
	defer func() { b.stop() }()
	same(a, "the pull request", `"to": "m5.xlarge"`, `"approved": "reviewer"`)
	s.forge.change(1, func(p *fakePull) { p.state = "closed" })
	same(a, "the end", `"state": "closed"`)
	b.stop() // nobody can be asked any more for what it only remembered
	b = s.member("b")
	same(b, "what has ended", `"state": "closed"`)
}
