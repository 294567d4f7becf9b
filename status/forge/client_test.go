package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func staticToken(context.Context) (string, error) { return testToken, nil }

// documents are pull requests as the forges write them, cut down to what surrounds
// what is read.
var documents = map[string]struct {
	kind Kind
	body string
	want PullRequest
}{
	"github": {
		GitHub,
		`{"id":1,"number":7,"state":"open","locked":false,"title":"More web","user":{"login":"ada","id":1},"body":null,"draft":true,"html_url":"https://github.com/platform/fleet/pull/7",
		  "labels":[{"id":2,"name":"safe"}],"created_at":"2026-05-01T10:00:00Z","updated_at":"2026-05-01T12:00:00Z","closed_at":null,"merged_at":null,"merge_commit_sha":"3333333333333333333333333333333333333333",
		  "head":{"label":"platform:topic","ref":"topic","sha":"` + sha1b + `","user":{"login":"platform"},"repo":{"id":5,"full_name":"platform/fleet"}},
		  "base":{"label":"platform:main","ref":"main","sha":"` + sha1a + `","repo":{"id":5}},"merged":false,"mergeable":null}`,
		PullRequest{
			Number: 7, Title: "More web", Author: "ada", WebURL: "https://github.com/platform/fleet/pull/7", Draft: true, State: Open, HeadSHA: sha1b, HeadRef: "topic",
			BaseRef: "main", BaseSHA: sha1a, MergeRef: "refs/pull/7/merge", Labels: []string{"safe"}, UpdatedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		},
	},
	"github fork": {
		GitHub, `{"number":7,"state":"open","head":{"ref":"main","repo":{"id":6}},"base":{"ref":"main","repo":{"id":5}}}`,
		PullRequest{Number: 7, State: Open, Fork: true, HeadRef: "main", BaseRef: "main", MergeRef: "refs/pull/7/merge"},
	},
	"github fork that is gone, by an account that is gone": {
		GitHub, `{"number":7,"state":"open","user":null,"head":{"ref":"main","repo":null},"base":{"ref":"main","repo":{"id":5}}}`,
		PullRequest{Number: 7, State: Open, Fork: true, HeadRef: "main", BaseRef: "main", MergeRef: "refs/pull/7/merge"},
	},
	"github merged": {
		GitHub, `{"number":7,"state":"closed","merged":true,"merged_at":"2026-05-01T12:00:00Z","merge_commit_sha":"` + sha1a + `","head":{"repo":{"id":5}},"base":{"repo":{"id":5}}}`,
		PullRequest{Number: 7, State: Merged, MergeSHA: sha1a},
	},
	"github closed": {
		GitHub, `{"number":7,"state":"closed","merged_at":null,"merge_commit_sha":"` + sha1a + `","head":{"repo":{"id":5}},"base":{"repo":{"id":5}}}`,
		PullRequest{Number: 7, State: Closed},
	},
	"gitea": {
		Gitea,
		`{"id":9,"number":3,"user":{"id":1,"login":"ada"},"title":"More web","labels":[{"id":1,"name":"safe"}],"state":"open","draft":false,"html_url":"https://git.example.com/platform/fleet/pulls/3",
		  "mergeable":true,"merged":false,"merged_at":null,"merge_commit_sha":null,"merge_base":"` + sha1a + `","updated_at":"2026-05-01T14:00:00+02:00",
		  "base":{"label":"main","ref":"main","sha":"` + sha1a + `","repo_id":5,"repo":{"id":5}},"head":{"label":"topic","ref":"topic","sha":"` + sha1b + `","repo_id":5,"repo":{"id":5}}}`,
		PullRequest{
			Number: 3, Title: "More web", Author: "ada", WebURL: "https://git.example.com/platform/fleet/pulls/3", State: Open, HeadSHA: sha1b, HeadRef: "topic",
			BaseRef: "main", BaseSHA: sha1a, Labels: []string{"safe"}, UpdatedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		},
	},
	"gitea fork": {
		Gitea, `{"number":3,"state":"open","head":{"label":"main","ref":"main","repo":{"id":6}},"base":{"repo":{"id":5}}}`,
		PullRequest{Number: 3, State: Open, Fork: true, HeadRef: "main"},
	},
	"gitea pushed by who may only read": {
		Gitea, `{"number":3,"state":"open","head":{"label":"","ref":"refs/pull/3/head","sha":"` + sha1b + `","repo":{"id":5}},"base":{"repo":{"id":5}}}`,
		PullRequest{Number: 3, State: Open, Fork: true, HeadRef: "refs/pull/3/head", HeadSHA: sha1b},
	},
	"gitea merged": {
		Gitea, `{"number":3,"state":"closed","merged":true,"merge_commit_sha":"` + sha1b + `","head":{"label":"x","repo":{"id":5}},"base":{"repo":{"id":5}}}`,
		PullRequest{Number: 3, State: Merged, MergeSHA: sha1b},
	},
	"gitlab": {
		GitLab,
		`{"id":1,"iid":9,"project_id":5,"title":"More web","state":"opened","draft":true,"work_in_progress":true,"author":{"id":1,"username":"ada"},"web_url":"https://gitlab.com/company/platform/fleet/-/merge_requests/9",
		  "updated_at":"2026-05-01T12:00:00.123Z","labels":["safe","a b"],"sha":"` + sha1b + `","source_branch":"topic","target_branch":"main","source_project_id":5,"target_project_id":5,
		  "merge_commit_sha":null,"squash_commit_sha":null,"diff_refs":{"base_sha":"` + none + `","head_sha":"` + sha1b + `","start_sha":"` + sha1a + `"}}`,
		PullRequest{
			Number: 9, Title: "More web", Author: "ada", WebURL: "https://gitlab.com/company/platform/fleet/-/merge_requests/9", Draft: true, State: Open, HeadSHA: sha1b, HeadRef: "topic",
			BaseRef: "main", BaseSHA: sha1a, MergeRef: "refs/merge-requests/9/merge", Labels: []string{"safe", "a b"}, UpdatedAt: time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC),
		},
	},
	"gitlab fork":                  {GitLab, `{"iid":9,"state":"opened","source_project_id":6,"target_project_id":5}`, PullRequest{Number: 9, State: Open, Fork: true, MergeRef: "refs/merge-requests/9/merge"}},
	"gitlab fork that is gone":     {GitLab, `{"iid":9,"state":"closed","source_project_id":null,"target_project_id":5}`, PullRequest{Number: 9, State: Closed, Fork: true}},
	"gitlab merged":                {GitLab, `{"iid":9,"state":"merged","sha":"h","merge_commit_sha":"m","squash_commit_sha":"s","source_project_id":5,"target_project_id":5}`, PullRequest{Number: 9, State: Merged, HeadSHA: "h", MergeSHA: "m"}},
	"gitlab squashed":              {GitLab, `{"iid":9,"state":"merged","sha":"h","merge_commit_sha":null,"squash_commit_sha":"s","source_project_id":5,"target_project_id":5}`, PullRequest{Number: 9, State: Merged, HeadSHA: "h", MergeSHA: "s"}},
	"gitlab moved forward":         {GitLab, `{"iid":9,"state":"merged","sha":"h","merge_commit_sha":null,"source_project_id":5,"target_project_id":5}`, PullRequest{Number: 9, State: Merged, HeadSHA: "h", MergeSHA: "h"}},
	"gitlab while it is merged":    {GitLab, `{"iid":9,"state":"locked","source_project_id":5,"target_project_id":5}`, PullRequest{Number: 9, State: Open, MergeRef: "refs/merge-requests/9/merge"}},
	"gitlab with an unknown field": {GitLab, `{"iid":9,"state":"closed","author":null,"labels":null,"updated_at":null,"source_project_id":5,"target_project_id":5,"new":{}}`, PullRequest{Number: 9, State: Closed}},
}

func TestPull(t *testing.T) {
	for name, tt := range documents {
		t.Run(name, func(t *testing.T) {
			f := newFakeForge(tt.kind)
			f.answer = func(*http.Request) (int, http.Header, string) { return 200, nil, tt.body }
			c := f.client(t)
			got, err := c.Pull(t.Context(), tt.want.Number)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !got.Fork && got.MergeRef != "" && strings.TrimSuffix(c.Profile().HeadRef(got.Number), "/head") != strings.TrimSuffix(got.MergeRef, "/merge") {
				t.Errorf("head %s, merge %s", c.Profile().HeadRef(got.Number), got.MergeRef)
			}
			f.answer = func(*http.Request) (int, http.Header, string) { return 200, nil, "[" + tt.body + "]" }
			list, _, _, err := c.Pulls(t.Context(), "")
			if diff := cmp.Diff([]PullRequest{tt.want}, list); err != nil || diff != "" {
				t.Errorf("in a list: %v\n%s", err, diff)
			}
		})
	}
}

// talk is n comments on pull request 1, a minute apart.
func talk(n int) []fakeComment {
	began := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	var out []fakeComment
	for i := range n {
		at := began.Add(time.Duration(i) * time.Minute)
		out = append(out, fakeComment{id: int64(i + 1), on: 1, author: "ada", body: fmt.Sprint("word ", i), created: at, updated: at})
	}
	return out
}

func TestComments(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.touch(1, nil)
		f.comments = talk(130)
		f.comments[3].updated = f.comments[129].updated.Add(time.Minute) // was edited
		f.comments[5].system = f.kind == GitLab
		f.comments = append(f.comments, fakeComment{id: 900, on: 2, body: "another pull request", created: f.now, updated: f.now})
		all, err := c.Comments(t.Context(), 1, time.Time{})
		want := 130
		if f.kind == GitLab {
			want--
		}
		if err != nil || len(all) != want {
			t.Fatalf("%d comments, %v", len(all), err)
		}
		for i := 1; i < len(all); i++ {
			if all[i].CreatedAt.Before(all[i-1].CreatedAt) {
				t.Fatal("not the oldest first")
			}
		}
		first := all[0]
		if first.ID != 1 || first.Number != 1 || first.Author != "ada" || first.Body != "word 0" || !strings.Contains(first.WebURL, "/1#") || first.CreatedAt.IsZero() {
			t.Errorf("%+v", first)
		}
		f.took()
		late, err := c.Comments(t.Context(), 1, f.comments[128].updated.Add(300*time.Millisecond))
		var ids []int64
		for _, m := range late {
			ids = append(ids, m.ID)
		}
		if diff := cmp.Diff([]int64{4, 129, 130}, ids); err != nil || diff != "" {
			t.Errorf("late ones: %v\n%s", err, diff)
		}
		if got := f.took(); len(got) != 1 {
			t.Errorf("late ones cost %v", got)
		}
	})
}

// TestCommentsOfAllPullRequests: they cost one request, however many there are, and
// GitLab one more for each merge request that moved.
func TestCommentsOfAllPullRequests(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.fill(100)
		since := f.now.Add(time.Minute)
		f.now = since
		say := func(id, on int64, issue bool) {
			f.touch(on, nil)
			f.comments = append(f.comments, fakeComment{id: id, on: on, author: "ada", body: "weir plan", created: f.now, updated: f.now, issue: issue})
		}
		look := func(want []int64, requests int) {
			t.Helper()
			f.took()
			list, err := c.CommentsSince(t.Context(), since)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, m := range list {
				got = append(got, m.ID, m.Number)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("comments and numbers (-want +got):\n%s", diff)
			}
			if took := f.took(); len(took) != requests {
				t.Errorf("%d requests, want %d: %v", len(took), requests, took)
			}
		}
		extra := func(n int) int {
			if f.kind == GitLab {
				return 1 + n
			}
			return 1
		}
		look(nil, 1)
		look(nil, 1)
		say(1, 7, false)
		say(2, 9, false)
		look([]int64{1, 7, 2, 9}, extra(2))
		look([]int64{1, 7, 2, 9}, 1)
		say(3, 7, false)
		look([]int64{1, 7, 2, 9, 3, 7}, extra(1))
		if f.kind != GitLab { // which tells notes on issues apart by itself
			say(4, 12, true)
			look([]int64{1, 7, 2, 9, 3, 7}, 1)
		}
		since = f.comments[2].created
		look([]int64{3, 7}, 1)
		since = f.now.Add(-time.Hour)
		list, err := c.CommentsSince(t.Context(), since)
		if err != nil || len(list) != 3 {
			t.Errorf("asked for an earlier time: %d, %v", len(list), err)
		}
		another := f.client(t)
		for _, want := range []int{1, 3} { // what was left out before is there
			from := f.comments[3-want].created
			if list, err := another.CommentsSince(t.Context(), from); err != nil || len(list) != want {
				t.Errorf("since %s: %d, want %d: %v", from, len(list), want, err)
			}
		}
	})
}

func TestLongCommentsAreCut(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.touch(1, nil)
		f.comments = talk(1)
		f.comments[0].body = "weir plan\n" + strings.Repeat("ü", 1<<20)
		list, err := c.Comments(t.Context(), 1, time.Time{})
		if err != nil || len(list) != 1 || len(list[0].Body) > 64<<10+5 || len(list[0].Body) < 64<<10-5 {
			t.Fatalf("%d, %v", len(list), err)
		}
		if got, ok := ParseCommand(list[0].Body); !ok || got.Name != Plan {
			t.Errorf("%+v", got)
		}
	})
}

func TestPermission(t *testing.T) {
	cases := map[Kind]map[string]Level{
		GitHub: {"none": None, "read": Read, "triage": Triage, "write": Write, "maintain": Maintain, "admin": Admin, "release-crew": Write},
		Gitea:  {"none": None, "read": Read, "write": Write, "admin": Admin, "owner": Admin},
		GitLab: {"5": None, "10": Read, "15": Read, "20": Triage, "30": Write, "40": Maintain, "50": Admin},
	}
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		for said, want := range cases[f.kind] {
			f.levels["ada"] = said
			if got, err := c.Permission(t.Context(), "ada"); err != nil || got != want {
				t.Errorf("%s is %s, want %s: %v", said, got, want, err)
			}
			if got := f.took(); len(got) > 2 {
				t.Errorf("asking costs %v", got)
			}
		}
		f.levels["blocked"] = "50"
		for _, user := range []string{"nobody", "", ".", "..", "../../user", "a/b", "ada?x=1", "ada#", strings.Repeat("x", 300)} {
			if got, err := c.Permission(t.Context(), user); err != nil || got != None {
				t.Errorf("%q may %s, %v", user, got, err)
			}
		}
		if f.kind == GitLab {
			if got, err := c.Permission(t.Context(), "blocked"); err != nil || got != None {
				t.Errorf("who is blocked may %s, %v", got, err)
			}
		}
		f.took()
		f.answer = func(*http.Request) (int, http.Header, string) { return 403, nil, "" }
		if got, err := c.Permission(t.Context(), "ada"); err == nil || got != None {
			t.Errorf("without an answer ada may %s, %v", got, err)
		}
	})
}

// TestPermissionIsOfWhoWasAskedFor: an answer about somebody else is none.
func TestPermissionIsOfWhoWasAskedFor(t *testing.T) {
	for _, kind := range []Kind{GitHub, Gitea} {
		f := newFakeForge(kind)
		f.answer = func(*http.Request) (int, http.Header, string) {
			return 200, nil, `{"permission":"admin","role_name":"admin","user":{"login":"root"}}`
		}
		if got, err := f.client(t).Permission(t.Context(), "ada"); err != nil || got != None {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
}
