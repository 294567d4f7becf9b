package forge

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakePulls notes what it hears of, and when.
type fakePulls struct {
	mu    sync.Mutex
	heard map[int64][]time.Time
	texts []Heard
}

func (p *fakePulls) Heard(_ int64, c Heard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts = append(p.texts, c)
}

func (p *fakePulls) Changed(number int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard == nil {
		p.heard = map[int64][]time.Time{}
	}
	p.heard[number] = append(p.heard[number], time.Now())
}

// counts is how often each pull request was heard of.
func (p *fakePulls) counts() map[int64]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[int64]int{}
	for n, times := range p.heard {
		out[n] = len(times)
	}
	return out
}

// withPulls gives the hook of GitHub's source somebody who hears of pull requests.
func (b *bench) withPulls() *fakePulls {
	p := &fakePulls{}
	hooks := map[string]Hook{}
	for name, hook := range b.r.hooks {
		if name == "github" {
			hook.Pulls, hook.Self = p, "weir-bot"
		}
		hooks[name] = hook
	}
	b.r.Set(hooks)
	return p
}

func said(number int, by string) string {
	return fmt.Sprintf(`{"action":"created","issue":{"number":%d,"pull_request":{}},"repository":{"full_name":"platform/fleet"},"sender":{"login":%q}}`, number, by)
}

// TestTextsOfComments: each text is reported at once, however soon after the one before.
func TestTextsOfComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := b.withPulls()
		running(t, b)
		for i, body := range []string{"looks good", "weir approve", "weir approve"} {
			action := "edited"
			if i == 0 {
				action = "created"
			}
			b.tell("issue_comment", fmt.Sprint("t", i), fmt.Sprintf(`{"action":%q,"issue":{"number":7,"pull_request":{}},"comment":{"id":5,"body":%q},"repository":{"full_name":"platform/fleet"},"sender":{"login":"ada"}}`, action, body))
		}
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		want := []Heard{{5, SumOf("looks good"), false}, {5, SumOf("weir approve"), true}, {5, SumOf("weir approve"), true}}
		if diff := cmp.Diff(want, p.texts); diff != "" {
			t.Error(diff)
		}
	})
}

// TestGitLabEditsAreNeverWeirsOwn: GitLab names the author of a note, whoever edited it.
func TestGitLabEditsAreNeverWeirsOwn(t *testing.T) {
	hook := Hook{Kind: GitLab, Self: "weir-bot"}
	hint := Hint{What: Commented, Sender: "weir-bot", Comment: Heard{ID: 1}}
	if !own(hook, hint) {
		t.Error("a comment of weir's is news")
	}
	if hint.Comment.Edited = true; own(hook, hint) {
		t.Error("an edit of weir's comment on GitLab is no news")
	}
	if hook.Kind = Gitea; !own(hook, hint) {
		t.Error("weir's own edit on Gitea is news")
	}
}

func changed(number int, by string) string {
	return fmt.Sprintf(`{"action":"synchronize","number":%d,"pull_request":{"head":{"sha":%q}},"repository":{"full_name":"platform/fleet"},"sender":{"login":%q}}`, number, sha1b, by)
}

// tell delivers an event of GitHub's source.
func (b *bench) tell(event, delivery, body string) Result {
	h := header("X-GitHub-Event", event, "X-GitHub-Delivery", delivery, "X-Hub-Signature-256", "sha256="+sign(secret, body))
	rec := b.send("github", h, body, somewhere)
	for result, code := range codes {
		if rec.Code == code && rec.Body.String() == string(result)+"\n" {
			return result
		}
	}
	return Result(rec.Body.String())
}

// running runs a receiver in a bubble until the test's end.
func running(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.r.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func TestPullRequestsAreHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := b.withPulls()
		running(t, b)
		for _, tt := range []struct {
			event, delivery, body string
			want                  Result
		}{
			{"pull_request", "1", changed(7, "ada"), Accepted},
			{"pull_request", "1", changed(7, "ada"), Repeated},
			{"issue_comment", "2", said(8, "ada"), Accepted},
			{"issue_comment", "3", said(9, "weir-bot"), Ignored},
			{"issue_comment", "4", said(9, "Weir-Bot"), Ignored},
			// People who share weir's login may still push.
			{"pull_request", "5", changed(10, "weir-bot"), Accepted},
			{"issue_comment", "6", said(0, "ada"), Ignored},
			{"issue_comment", "7", said(-1, "ada"), Ignored},
			{"issue_comment", "8", `{"action":"created","issue":{"number":11,"pull_request":{}},"repository":{"full_name":"platform/other"}}`, Ignored},
			{"status", "9", `{"context":"fleet/plan","sender":{"login":"weir-bot"}}`, Ignored},
		} {
			if got := b.tell(tt.event, tt.delivery, tt.body); got != tt.want {
				t.Errorf("%s %s: %s, want %s", tt.event, tt.body, got, tt.want)
			}
			synctest.Wait()
		}
		if diff := cmp.Diff(map[int64]int{7: 1, 8: 1, 10: 1}, p.counts()); diff != "" {
			t.Errorf("heard of (-want +got):\n%s", diff)
		}
		if n := b.sources["github"].count(); n != 0 {
			t.Errorf("the source looked %d times though its branch did not move", n)
		}
	})
}

// TestNobodyAsksForPullRequests: the hook is as it was before there were any.
func TestNobodyAsksForPullRequests(t *testing.T) {
	b := newBench(t)
	if got := b.tell("issue_comment", "1", said(7, "ada")); got != Ignored {
		t.Errorf("a comment: %s", got)
	}
	if got := b.tell("pull_request", "2", changed(7, "ada")); got != Ignored || len(b.r.queue) != 0 {
		t.Errorf("a pull request: %s", got)
	}
}

// TestStormOfPullRequests: a thousand deliveries about one are heard of twice, and
// others do not wait for it.
func TestStormOfPullRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := b.withPulls()
		running(t, b)
		began := time.Now()
		for i := range 1000 {
			if got := b.tell("issue_comment", fmt.Sprint("a", i), said(7, "ada")); got != Accepted {
				t.Fatalf("delivery %d: %s", i, got)
			}
			synctest.Wait()
		}
		b.tell("pull_request", "b", changed(8, "ada"))
		synctest.Wait()
		if diff := cmp.Diff(map[int64]int{7: 1, 8: 1}, p.counts()); diff != "" {
			t.Errorf("at once (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(map[int64][]time.Time{7: {began, began.Add(spacing)}, 8: {began}}, p.heard); diff != "" {
			t.Errorf("after a minute (-want +got):\n%s", diff)
		}
		// A pull request that was forgotten meanwhile is heard of at once again.
		b.tell("issue_comment", "c", said(7, "ada"))
		synctest.Wait()
		if n := p.counts()[7]; n != 3 {
			t.Errorf("heard of %d times", n)
		}
	})
}

func TestHeardIsBounded(t *testing.T) {
	p := &fakePulls{}
	hook := func(string) Hook { return Hook{Pulls: p} }
	h := reportedPulls{}
	now := time.Now()
	for i := range 2 * maxReported {
		h.add(accepted{source: "fleet", hint: Hint{Number: int64(i + 1)}})
	}
	if len(h) != maxReported {
		t.Errorf("%d are waited with", len(h))
	}
	if next := h.act(now, hook); next != spacing || len(p.counts()) != maxReported {
		t.Errorf("%d heard of, next in %s", len(p.counts()), next)
	}
	if next := h.act(now.Add(spacing), hook); next != time.Hour || len(h) != 0 {
		t.Errorf("%d are left, next in %s", len(h), next)
	}
}
