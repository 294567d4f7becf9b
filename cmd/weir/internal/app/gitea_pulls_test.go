package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/status/pulls"
)

// reviewed is a world on Gitea with pull requests: weir has a user of its own, which
// administers the repository, and others may write, read or neither.
type reviewed struct {
	*giteaWorld
	weir, reviewer, reader *giteatest.User
	// main is the tip of what is followed.
	main string
	app  *App
}

// newReviewed runs a daemon over one pool, told of everything by webhook.
func newReviewed(t *testing.T, s *giteatest.Server, owner string, change func(*config.Config)) *reviewed {
	t.Helper()
	g := newGiteaWorld(t, s, owner, quickAWS())
	r := &reviewed{giteaWorld: g, weir: s.User(owner + "-weir"), reviewer: s.User(owner + "-reviewer"), reader: s.User(owner + "-reader")}
	g.repo.Grant(r.weir, "admin")
	g.repo.Grant(r.reviewer, "write")
	g.repo.Grant(r.reader, "read")
	g.put("token", r.weir.Token(giteaScopes...))
	g.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 3)}))
	r.main = g.clone.Push("main", "first")
	c := g.config()
	if change != nil {
		change(c)
	}
	r.app = g.run(c, "push", "pull_request", "issue_comment", "status")
	if c.Targets[0].Apply == targetspec.AsReviewed {
		_, digest, _ := strings.Cut(g.finally(r.main, "fleet/apply", "pending", "weir approve "), "weir approve ")
		if _, err := r.app.recorder.Approve(digest, "the test"); err != nil {
			t.Fatal(err)
		}
		r.app.requests.passAll()
	}
	g.finally(r.main, "fleet/apply", "success")
	return r
}

// propose pushes a pool of a size to a branch that begins at main's first commit.
func (r *reviewed) propose(branch string, maxSize int) (sha string) {
	r.t.Helper()
	r.clone.Git("switch", "--quiet", "--create", branch, r.main)
	r.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", maxSize)}))
	return r.clone.Push(branch, fmt.Sprintf("%d at most", maxSize))
}

// told are weir's comments on a pull request that tell of a plan, without answers
// to commands.
func (r *reviewed) told(number int64) []giteatest.Comment {
	r.t.Helper()
	return slices.DeleteFunc(r.repo.Comments(number), func(c giteatest.Comment) bool {
		return c.User.Login != r.weir.Name || !strings.Contains(c.Body, "<!-- weir")
	})
}

// comment waits until weir's only comment has all words, and returns it.
func (r *reviewed) comment(number int64, words ...string) giteatest.Comment {
	r.t.Helper()
	var list []giteatest.Comment
	eventually(r.t, fmt.Sprintf("the comment on %d", number), func() string {
		switch list = r.told(number); {
		case len(list) == 0:
			return "there is none"
		case len(list) > 1:
			r.t.Fatalf("%d comments", len(list))
		case !containsAll(list[0].Body, words):
			return fmt.Sprintf("want %q in\n%s", words, list[0].Body)
		}
		return ""
	})
	return list[0]
}

// approve has the reviewer approve what weir's comment shows, in a later second than that of
// the comment: Gitea counts whole ones.
func (r *reviewed) approve(number int64) giteatest.Comment {
	r.t.Helper()
	r.comment(number, "weir approve")
	time.Sleep(1100 * time.Millisecond)
	return r.repo.Say(r.reviewer, number, "weir approve")
}

// answered waits for an answer of weir's on a pull request with all words.
func (r *reviewed) answered(number int64, words ...string) {
	r.t.Helper()
	eventually(r.t, "an answer", func() string {
		for _, c := range r.repo.Comments(number) {
			if c.User.Login == r.weir.Name && !strings.Contains(c.Body, "<!-- weir") && containsAll(c.Body, words) {
				return ""
			}
		}
		return fmt.Sprintf("none has %q", words)
	})
}

// edit has a user change the text of anybody's comment.
func (r *reviewed) edit(u *giteatest.User, comment int64, body string) {
	r.t.Helper()
	u.Must(http.MethodPatch, r.repo.Path(fmt.Sprintf("/issues/comments/%d", comment)), map[string]any{"body": body}, nil)
}

// marked waits for weir's mark on a comment.
func (r *reviewed) marked(c giteatest.Comment, mark string) {
	r.t.Helper()
	eventually(r.t, "the mark on "+c.Body, func() string {
		if got := r.repo.Reactions(c.ID); !slices.Contains(got, r.weir.Name+" "+mark) {
			return fmt.Sprintf("%v, want %s", got, mark)
		}
		return ""
	})
}

// TestGiteaPulls is the life of pull requests on a real Gitea.
func TestGiteaPulls(t *testing.T) {
	s := giteatest.New(t)
	t.Run("merged", func(t *testing.T) { testGiteaPullMerged(t, s) })
	t.Run("held", func(t *testing.T) { testGiteaPullHeld(t, s) })
	t.Run("taken back", func(t *testing.T) { testGiteaApprovalTakenBack(t, s) })
	t.Run("gated", func(t *testing.T) { testGiteaPullGated(t, s) })
	t.Run("edited", func(t *testing.T) { testGiteaPullEdited(t, s) })
	t.Run("a bot without rights", func(t *testing.T) { testGiteaBotWithoutRights(t, s) })
}

// testGiteaPullEdited has somebody with write access edit and delete the comments of others.
func testGiteaPullEdited(t *testing.T, s *giteatest.Server) {
	r := newReviewed(t, s, "erin", func(c *config.Config) { c.Targets[0].Apply = targetspec.AsReviewed })
	mallory := s.User("mallory")
	r.repo.Grant(mallory, "write")
	head := r.propose("larger", 4)
	number := r.repo.Open(r.owner, "larger", "More machines")
	r.finally(head, "fleet/plan", "success")
	shown := r.comment(number, "weir approve")
	time.Sleep(1100 * time.Millisecond)

	// Edited within the second in which it was written, and edited later.
	said := r.repo.Say(r.reviewer, number, "Looks good, but let us wait.")
	r.edit(mallory, said.ID, "weir approve")
	r.marked(said, "-1")
	r.answered(number, "Write a new comment")
	said = r.repo.Say(r.reviewer, number, "We wait.")
	time.Sleep(1100 * time.Millisecond)
	r.edit(mallory, said.ID, "weir approve")
	r.marked(said, "-1")
	// weir's own comment, edited by somebody else, is written anew.
	r.edit(mallory, shown.ID, strings.Replace(shown.Body, "3 → 4", "3 → 3", 1))
	eventually(t, "weir's comment as it was", func() string {
		if got := r.comment(number); got.Body != shown.Body {
			return got.Body
		}
		return ""
	})
	if got := r.app.recorder.Read().Approvals; len(got) > 0 {
		t.Fatalf("approved: %+v", got)
	}
	// Deleted, it comes back for an approval, which does not count, and for weir plan.
	remove := func() {
		t.Helper()
		r.owner.Must(http.MethodDelete, r.repo.Path(fmt.Sprintf("/issues/comments/%d", r.comment(number).ID)), nil, nil)
	}
	remove()
	r.marked(r.repo.Say(r.reviewer, number, "weir approve"), "-1")
	r.answered(number, "was deleted", "writes it again")
	r.comment(number, "3 → 4")
	remove()
	r.marked(r.repo.Say(r.reviewer, number, "weir plan"), "eyes")
	r.comment(number, "3 → 4")
	r.marked(r.repo.Say(r.reviewer, number, "/weir approve"), "-1")
	r.marked(r.approve(number), "+1")
	r.comment(number, "Approved by", r.reviewer.Name)
	remove()
	r.repo.Merge(r.owner, number, "merge")
	r.finally(r.tip(), "fleet/apply", "success")
	r.comment(number, "erged")
}

// testGiteaBotWithoutRights has a token whose user may not ask what others may do.
func testGiteaBotWithoutRights(t *testing.T, s *giteatest.Server) {
	r := newReviewed(t, s, "fred", nil)
	r.owner.Must(http.MethodPut, r.repo.Path("/collaborators/"+r.weir.Name), map[string]any{"permission": "write"}, nil)
	head := r.propose("larger", 4)
	number := r.repo.Open(r.owner, "larger", "More machines")
	r.finally(head, "fleet/plan", "success")
	r.marked(r.repo.Say(r.reviewer, number, "weir plan"), "-1")
	r.answered(number, "administrator of the repository")
	r.marked(r.repo.Say(r.reviewer, number, "weir plan"), "-1")
	answers := 0
	for _, c := range r.repo.Comments(number) {
		if strings.Contains(c.Body, "cannot act on comments") {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("%d answers", answers)
	}
}

func testGiteaPullMerged(t *testing.T, s *giteatest.Server) {
	r := newReviewed(t, s, "alice", nil)
	head := r.propose("larger", 4)
	number := r.repo.Open(r.owner, "larger", "More machines")
	r.finally(head, "fleet/plan", "success", "1 of 1 target")
	shown := r.comment(number, "prod", "workers", "maxSize", "3 → 4", "digest")

	r.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 5)}))
	next := r.clone.Push("larger", "still more")
	r.finally(next, "fleet/plan", "success")
	var again giteatest.Comment
	eventually(t, "the edit", func() string {
		if again = r.comment(number); again.Body == shown.Body {
			return "the comment is as before"
		}
		return ""
	})
	if again.ID != shown.ID {
		t.Errorf("comment %d took the place of %d", again.ID, shown.ID)
	}

	// weir shows a fault of a pull request with its place, and that it is mended.
	r.clone.Write(map[string]string{"overlays/prod/workers.yaml": strings.Replace(pool("workers", "m5.large", 5), "  maxSize: 5", "  maxSise: 5", 1)})
	broken := r.clone.Push("larger", "a slip")
	r.finally(broken, "fleet/plan", "failure", "overlays/prod/workers.yaml:19")
	r.comment(number, "maxSise", "overlays/prod/workers.yaml")
	r.clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 6)}))
	mended := r.clone.Push("larger", "mended")
	r.finally(mended, "fleet/plan", "success")
	r.comment(number, "maxSize")

	before := len(r.writes())
	if before != 2 {
		t.Errorf("a pull request changed AWS: %v", r.writes())
	}
	r.repo.Merge(r.owner, number, "squash")
	merged := r.tip()
	r.finally(merged, "fleet/apply", "success")
	if got := r.comment(number, "erged"); got.ID != shown.ID {
		t.Errorf("comment %d took the place of %d", got.ID, shown.ID)
	}
	// The group's tag records the commit of its fields before the fields change.
	if got := r.writes()[before:]; !slices.Equal(got, []string{"CreateOrUpdateTags", "UpdateAutoScalingGroup"}) {
		t.Errorf("the merge led to %v", got)
	}

	// A merge conflicts with a pull request that began before it.
	late := r.propose("late", 9)
	n := r.repo.Open(r.owner, "late", "From before")
	r.finally(late, "fleet/plan", "failure", "update the branch")
	r.comment(n, "overlays/prod/workers.yaml")
	r.owner.Must(http.MethodPatch, r.repo.Path(fmt.Sprintf("/pulls/%d", n)), map[string]any{"state": "closed"}, nil)
	r.comment(n, "losed")

	// Nobody is told much of what changes nothing.
	r.clone.Git("switch", "--quiet", "--create", "docs", merged)
	r.clone.Write(map[string]string{"README.md": "Pools.\n"})
	docs := r.clone.Push("docs", "a word")
	n = r.repo.Open(r.owner, "docs", "A word")
	if text := r.finally(docs, "fleet/plan", "success"); text != "no target affected" {
		t.Errorf("the status: %q", text)
	}
	if got := r.told(n); len(got) > 0 {
		t.Errorf("a pull request that changes nothing has %d comments", len(got))
	}
}

// tip is the commit of main on the server.
func (r *reviewed) tip() string {
	r.t.Helper()
	r.clone.Git("fetch", "--quiet", "origin", "main")
	return r.clone.Git("rev-parse", "FETCH_HEAD")
}

// testGiteaPullHeld has a target whose changes wait until they are approved.
func testGiteaPullHeld(t *testing.T, s *giteatest.Server) {
	r := newReviewed(t, s, "bob", func(c *config.Config) { c.Targets[0].Apply = targetspec.AsReviewed })
	head := r.propose("larger", 4)
	number := r.repo.Open(r.owner, "larger", "More machines")
	r.finally(head, "fleet/plan", "success")
	r.comment(number, "weir approve")
	r.marked(r.repo.Say(r.reader, number, "weir approve"), "-1")
	r.marked(r.repo.Say(r.reader, number, "weir plan"), "-1")
	r.marked(r.repo.Say(r.reviewer, number, "weir plan"), "eyes")
	r.marked(r.repo.Say(r.reviewer, number, "weir frobnicate"), "-1")
	r.marked(r.approve(number), "+1")
	r.comment(number, r.reviewer.Name)
	r.repo.Merge(r.owner, number, "merge")
	merged := r.tip()
	r.finally(merged, "fleet/apply", "success")
	r.comment(number, "erged")

	// Nobody approves the next one, which waits after the merge.
	r.main = merged
	head = r.propose("larger-still", 5)
	number = r.repo.Open(r.owner, "larger-still", "Still more")
	r.finally(head, "fleet/plan", "success")
	writes := len(r.writes())
	r.repo.Merge(r.owner, number, "rebase")
	r.finally(r.tip(), "fleet/apply", "pending", "approval")
	if got := r.writes(); len(got) != writes {
		t.Errorf("what nobody approved led to %v", got[writes:])
	}
}

// testGiteaApprovalTakenBack has an approval by comment that a comment takes back before the
// merge, one that stays, and one that is taken back once it is merged and has begun nothing.
func testGiteaApprovalTakenBack(t *testing.T, s *giteatest.Server) {
	r := newReviewed(t, s, "dora", func(c *config.Config) { c.Targets[0].Apply = targetspec.AsReviewed })
	head := r.propose("larger", 4)
	number := r.repo.Open(r.owner, "larger", "More machines")
	r.finally(head, "fleet/plan", "success")
	r.comment(number, "weir approve")
	r.marked(r.repo.Say(r.reviewer, number, "weir unapprove"), "-1") // nothing was approved
	r.marked(r.approve(number), "+1")
	r.comment(number, "Approved by", r.reviewer.Name)
	r.marked(r.repo.Say(r.reader, number, "weir unapprove"), "-1")
	if got := r.app.recorder.Read().Approvals; len(got) != 1 {
		t.Fatalf("a reader took back what a writer approved: %+v", got)
	}
	r.marked(r.repo.Say(r.reviewer, number, "weir unapprove"), "+1")
	eventually(t, "a comment that tells of no approval", func() string {
		if body := r.comment(number).Body; strings.Contains(body, "Approved by") {
			return body
		}
		return ""
	})
	if got := r.app.recorder.Read().Approvals; len(got) > 0 {
		t.Errorf("on record: %+v", got)
	}
	writes := len(r.writes())
	r.repo.Merge(r.owner, number, "merge")
	merged := r.tip()
	r.finally(merged, "fleet/apply", "pending", "approval")
	if got := r.writes(); len(got) != writes {
		t.Errorf("what was approved no more led to %v", got[writes:])
	}

	// Approved again, of another pull request: it runs when it is merged.
	r.main = merged
	head = r.propose("larger-still", 5)
	number = r.repo.Open(r.owner, "larger-still", "Still more")
	r.finally(head, "fleet/plan", "success")
	r.comment(number, "weir approve")
	r.marked(r.approve(number), "+1")
	r.marked(r.repo.Say(r.reviewer, number, "weir unapprove"), "+1")
	r.marked(r.approve(number), "+1")
	r.repo.Merge(r.owner, number, "merge")
	r.finally(r.tip(), "fleet/apply", "success")
	if got := r.app.recorder.Read(); len(got.Approvals)+len(got.Grants) > 0 {
		t.Errorf("left on record: %+v", got)
	}
}

// testGiteaPullGated has a draft and a fork, each of which waits for somebody.
func testGiteaPullGated(t *testing.T, s *giteatest.Server) {
	r := newReviewed(t, s, "carol", func(c *config.Config) {
		c.Forges[0].PullRequests = pulls.Policy{Plan: pulls.Always, Drafts: pulls.DraftsWait, Forks: pulls.Forks{AllowBy: []string{pulls.ByComment}}}
	})
	head := r.propose("draft", 4)
	number := r.repo.Open(r.owner, "draft", "WIP: More machines")
	r.finally(head, "fleet/plan", "pending", "draft")
	r.owner.Must(http.MethodPatch, r.repo.Path(fmt.Sprintf("/pulls/%d", number)), map[string]any{"title": "More machines"}, nil)
	r.finally(head, "fleet/plan", "success")
	r.comment(number, "maxSize")

	fork := r.repo.Fork(r.reader)
	clone := fork.Clone(r.reader)
	clone.Git("pull", "--quiet", "origin", "main")
	clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 7)}))
	outside := clone.Push("mine", "from outside")
	number = r.repo.Open(r.reader, r.reader.Name+":mine", "From outside")
	r.finally(outside, "fleet/plan", "pending", "needs a maintainer")
	r.marked(r.repo.Say(r.reader, number, "weir plan"), "-1")
	if got := r.told(number); len(got) > 0 {
		t.Errorf("a fork that waits has %d comments", len(got))
	}
	r.marked(r.repo.Say(r.reviewer, number, "weir plan"), "eyes")
	r.finally(outside, "fleet/plan", "success")
	r.comment(number, "maxSize")

	// A later push needs another "weir plan" of a maintainer.
	clone.Write(overlay(map[string]string{"workers": pool("workers", "m5.large", 8)}))
	later := clone.Push("mine", "more from outside")
	r.finally(later, "fleet/plan", "pending")
	if got := r.writes(); len(got) != 2 {
		t.Errorf("pull requests changed AWS: %v", got)
	}
}
