package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Webhooks reach the member that speaks for nothing: it verifies them, and the one that
// speaks for the source reads the pull request, its plan and the comment that approves it,
// which runs on the one that owns the account. Nobody asks by himself for an hour. Each status
// is written once.
func TestAWebhookOfACommentThatReachesOneMemberRunsOnAnother(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	s.hooks = true
	s.forge.levels["reviewer"] = "write"
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	s.owned(s.source(), a)
	s.owned(s.scope(), b)
	eventually(t, "the first plan", func() string {
		if r, _ := a.current.Targets.Find("prod"); r.Last == nil || r.Last.Plan == nil || r.Last.Plan.Empty() {
			return "there is no plan"
		}
		return ""
	})
	r, _ := a.current.Targets.Find("prod")
	if _, err := b.recorder.Approve(r.Last.Plan.Digest(), "somebody"); err != nil {
		t.Fatal(err)
	}
	converged(t, b.App, first, 1)
	hook := func(event, body string) {
		t.Helper()
		body = strings.Replace(body, "{", `{"repository":{"full_name":"platform/fleet"},"sender":{"login":"reviewer"},`, 1)
		if code, err := deliverEvent(b.App, event, fmt.Sprint("d-", event, len(body)), body, hookSecret); code != http.StatusAccepted || err != nil {
			t.Fatalf("%s: %d, %v", event, code, err)
		}
	}
	head := s.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	hook("pull_request", `{"action":"opened","number":1,"pull_request":{"number":1,"base":{"ref":"main"},"head":{"sha":"`+head+`"}}}`)
	s.told(head, "fleet/plan", "success", "")
	s.commented(1)
	s.forge.say(1, "reviewer", "weir approve")
	hook("issue_comment", `{"action":"created","is_pull":true,"issue":{"number":1,"pull_request":{}},"comment":{"id":1,"user":{"login":"reviewer"},"body":"weir approve"}}`)
	s.approved(b, 1)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	merge := s.repo.Commit("merge")
	hook("push", `{"ref":"refs/heads/main","after":"`+merge+`"}`)
	for _, m := range []*member{b, a} {
		converged(t, m.App, merge, 1)
	}
	if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>5</MaxSize>") {
		t.Errorf("AWS has %s", got)
	}
	s.told(merge, "fleet/apply", "success", "")
	s.eachStatusOnce()
}
