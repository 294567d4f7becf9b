package forge

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pullText is a pull request as each forge's documentation shows it, of the branch
// weir/revert-1 into main unless fork or another branch is asked for.
func pullText(kind Kind, number int, state, head string, fork bool) string {
	id, merged := 1, "null"
	if fork {
		id = 2
	}
	if state == "merged" {
		merged = `"2026-05-01T12:00:00Z"`
	}
	if kind == GitLab {
		return fmt.Sprintf(`{"iid":%d,"title":"t","state":%q,"source_branch":%q,"target_branch":"main","source_project_id":%d,"target_project_id":1,"sha":%q,"merge_commit_sha":%q,
			"web_url":"https://git.example.com/company/platform/fleet/-/merge_requests/%[1]d","author":{"username":"weir-bot"},"diff_refs":{"start_sha":%[5]q}}`, number, state, head, id, sha1b, sha1a)
	}
	open := "open"
	if state != "opened" {
		open = "closed"
	}
	return fmt.Sprintf(`{"number":%d,"title":"t","state":%q,"merged":%t,"merged_at":%s,"merge_commit_sha":%q,"html_url":"https://git.example.com/platform/fleet/pull/%[1]d","user":{"login":"weir-bot"},
		"head":{"label":%[6]q,"ref":%[6]q,"sha":%[7]q,"repo":{"id":%d}},"base":{"label":"main","ref":"main","sha":"","repo":{"id":1}}}`, number, open, state == "merged", merged, sha1a, head, sha1b, id)
}

// TestAProposal: what is sent to find, open and close one, and what is read from the answer.
func TestAProposal(t *testing.T) {
	want := map[Kind][]string{
		GitHub: {
			"GET /api/v3/repos/platform/fleet/pulls?base=main&direction=desc&head=platform%3Aweir%2Frevert-1&per_page=100&sort=created&state=all",
			"POST /api/v3/repos/platform/fleet/pulls",
			"PATCH /api/v3/repos/platform/fleet/pulls/9", "PATCH /api/v3/repos/platform/fleet/pulls/9", "PATCH /api/v3/repos/platform/fleet/pulls/9",
		},
		Gitea: {
			"GET /api/v1/repos/platform/fleet/pulls/main/weir/revert-1",
			"POST /api/v1/repos/platform/fleet/pulls",
			"PATCH /api/v1/repos/platform/fleet/pulls/9", "PATCH /api/v1/repos/platform/fleet/pulls/9", "PATCH /api/v1/repos/platform/fleet/pulls/9",
		},
		GitLab: {
			"GET /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests?order_by=created_at&page=1&per_page=100&sort=desc&source_branch=weir%2Frevert-1&state=all&target_branch=main",
			"POST /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests",
			"PUT /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/9", "PUT /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/9",
			"PUT /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/9",
		},
	}
	bodies := map[Kind][]string{
		GitHub: {`"title":"T"`, `"body":"B"`, `"head":"weir/revert-1"`, `"base":"main"`, `"state":"closed"`, `"title":"T2"`, `"body":"B2"`, `"body":"B3"`},
		Gitea:  {`"title":"T"`, `"body":"B"`, `"head":"weir/revert-1"`, `"base":"main"`, `"state":"closed"`, `"title":"T2"`, `"body":"B2"`, `"body":"B3"`},
		GitLab: {`"title":"T"`, `"description":"B"`, `"source_branch":"weir/revert-1"`, `"target_branch":"main"`, `"state_event":"close"`, `"title":"T2"`, `"description":"B2"`, `"description":"B3"`},
	}
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.answer = func(r *http.Request) (int, http.Header, string) {
			one := pullText(f.kind, 9, "opened", "weir/revert-1", false)
			switch {
			case r.Method != http.MethodGet:
				return 201, nil, one
			case f.kind == Gitea:
				return 404, nil, `{"message":"not found"}`
			}
			return 200, nil, "[]"
		}
		if _, found, err := c.PullOf(t.Context(), "main", "weir/revert-1"); found || err != nil {
			t.Error(found, err)
		}
		p, err := c.OpenPull(t.Context(), Proposal{Title: "T", Body: "B", Head: "weir/revert-1", Base: "main"})
		if err != nil || p.Number != 9 || p.State != Open || p.WebURL == "" || p.Fork {
			t.Errorf("%+v, %v", p, err)
		}
		if err := errors.Join(c.EditPull(t.Context(), 9, "T2", "B2"), c.EditPull(t.Context(), 9, "", "B3"), c.ClosePull(t.Context(), 9)); err != nil {
			t.Error(err)
		}
		for _, body := range f.bodies {
			if strings.Contains(body, "B3") && regexp.MustCompile(`"title":"[^"]`).MatchString(body) {
				t.Errorf("a title that nobody asked for: %s", body)
			}
		}
		if got := f.took(); !slices.Equal(got, want[f.kind]) {
			t.Errorf("requests %q\nwant %q", got, want[f.kind])
		}
		all := strings.Join(f.bodies, " ")
		for _, part := range bodies[f.kind] {
			if !strings.Contains(all, part) {
				t.Errorf("%s is not in %s", part, all)
			}
		}
	})
}

// TestWhichPullRequestABranchHas: closed and merged ones count, a fork's branch of the same
// name does not.
func TestWhichPullRequestABranchHas(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		for state, want := range map[string]State{"opened": Open, "closed": Closed, "merged": Merged} {
			f.answer = func(r *http.Request) (int, http.Header, string) {
				own := pullText(f.kind, 7, state, "weir/revert-1", false)
				if f.kind == Gitea && !strings.HasSuffix(r.URL.Path, "/pulls") {
					return 200, nil, own
				}
				return 200, nil, "[" + pullText(f.kind, 9, "opened", "weir/revert-1", true) + "," + pullText(f.kind, 8, "opened", "other", false) + "," + own + "]"
			}
			p, found, err := c.PullOf(t.Context(), "main", "weir/revert-1")
			if err != nil || !found || p.Number != 7 || p.State != want || want == Merged && p.MergeSHA != sha1a {
				t.Errorf("%s: %+v, %t, %v", state, p, found, err)
			}
		}
	})
}

// TestRefusedProposals: each says what the token needs, and a write is tried once.
func TestRefusedProposals(t *testing.T) {
	want := map[Kind]string{GitHub: "Pull requests: read and write", Gitea: "write:repository", GitLab: "the role Developer"}
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.answer = func(*http.Request) (int, http.Header, string) { return 403, nil, `{"message":"no"}` }
		if _, err := c.OpenPull(t.Context(), Proposal{}); err == nil || !strings.Contains(err.Error(), want[f.kind]) {
			t.Error(err)
		}
		if err := c.ClosePull(t.Context(), 7); err == nil || !strings.Contains(err.Error(), want[f.kind]) {
			t.Error(err)
		}
		if got := f.took(); len(got) != 2 {
			t.Error(got)
		}
	})
}
