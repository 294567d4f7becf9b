package forge

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProfiles is the table of what each kind of forge answers.
func TestProfiles(t *testing.T) {
	type answers struct {
		Label, Commit, Pull, Comment, Head, Merge, Noun, Repository, GitUser string
		Limits                                                               Limits
		Client, Apps                                                         bool
	}
	gitea := answers{
		Label: "gitea", Commit: "/commit/" + sha1b, Pull: "/pulls/7", Comment: "/pulls/7#issuecomment-9", Head: "refs/pull/7/head",
		Noun: "pull request", Repository: "b/c", Limits: Limits{Context: 255, Description: 255, Comment: 65_000}, Client: true,
	}
	for kind, want := range map[Kind]answers{
		GitHub: {
			Label: "github", Commit: "/commit/" + sha1b, Pull: "/pull/7", Comment: "/pull/7#issuecomment-9", Head: "refs/pull/7/head", Merge: "refs/pull/7/merge",
			Noun: "pull request", Repository: "b/c", Limits: Limits{Context: 255, Description: 140, PerMinute: 60, Comment: 65_536}, Client: true, Apps: true,
		},
		Gitea: gitea, Forgejo: gitea,
		GitLab: {
			Label: "gitlab", Commit: "/-/commit/" + sha1b, Pull: "/-/merge_requests/7", Comment: "/-/merge_requests/7#note_9",
			Head: "refs/merge-requests/7/head", Merge: "refs/merge-requests/7/merge",
			Noun: "merge request", Repository: "a/b/c", GitUser: "oauth2", Limits: Limits{Context: 255, Description: 255, Comment: 1_000_000}, Client: true,
		},
		Generic: {Label: "generic", Noun: "pull request", Repository: "b/c"},
		"svn":   {Label: "svn", Repository: "b/c", Client: true}, // the configuration refuses it with better words
	} {
		p := ProfileOf(kind)
		const address = "https://git.example.com/a/b/c"
		l := NewLinks(address, kind)
		got := answers{
			Label: p.Label, Head: p.HeadRef(7), Merge: p.MergeRef(7), Noun: p.PullRequest, GitUser: p.GitUser, Limits: p.Limits, Client: !p.WebhooksOnly, Apps: p.Apps,
			Commit: strings.TrimPrefix(l.Commit(sha1b), address), Pull: strings.TrimPrefix(l.Pull(7), address), Comment: strings.TrimPrefix(l.Comment(7, 9), address),
		}
		var err error
		if got.Repository, err = p.RepositoryOf(address + ".git"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	if got := Kinds(); !slices.Equal(got, []string{"github", "gitea", "forgejo", "gitlab", "generic"}) {
		t.Errorf("kinds %v", got)
	}
	want := []PullRefs{{Head: "refs/pull/7/head"}, {"refs/merge-requests/7/head", "refs/merge-requests/7/merge"}}
	if diff := cmp.Diff(want, AllPullRefs(7)); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
}

// TestEveryProfileIsWhole: a new row lacks nothing that weir reads of it.
func TestEveryProfileIsWhole(t *testing.T) {
	for _, p := range profiles() {
		hook := p.webhook
		if p.Label == "" || p.PullRequest == "" || p.Repository == "" || hook.decode == nil || len(hook.event) == 0 || (len(hook.signature) == 0) == (hook.token == "") {
			t.Errorf("%s: %+v", p.Kind, p)
		}
		if p.WebhooksOnly != (p.open == nil) {
			t.Errorf("%s: a client and none", p.Kind)
		}
		if p.WebhooksOnly {
			continue
		}
		if p.head == "" || len(p.hosts) == 0 || slices.Contains([]string{p.paths.commit, p.paths.file, p.paths.line, p.paths.pull, p.paths.comment}, "") {
			t.Errorf("%s: %+v", p.Kind, p)
		}
		if p.Limits.Context == 0 || p.Limits.Description == 0 || p.Limits.Comment == 0 {
			t.Errorf("%s: %+v", p.Kind, p.Limits)
		}
		c, err := New(ClientOptions{Kind: p.Kind, URL: "https://git.example.com", Repository: "a/b"})
		if err != nil || c.Profile().Kind != p.Kind {
			t.Errorf("%s: %v", p.Kind, err)
		}
	}
}
