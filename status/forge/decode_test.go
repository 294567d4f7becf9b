package forge

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	sha1a = "1111111111111111111111111111111111111111"
	sha1b = "2222222222222222222222222222222222222222"
	none  = "0000000000000000000000000000000000000000"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// deliveries are what the forges send, cut down to what surrounds what is read.
var deliveries = map[string]struct {
	kind Kind
	h    http.Header
	body string
	want Hint
}{
	"github push": {
		GitHub, header("X-GitHub-Event", "push", "X-GitHub-Delivery", "d-1"),
		`{"ref":"refs/heads/main","before":"` + sha1a + `","after":"` + sha1b + `","created":false,"repository":{"id":1,"full_name":"platform/fleet","pushed_at":1},"pusher":{"name":"x"},"commits":[{"id":"x"}]}`,
		Hint{Event: "push", Delivery: "d-1", Repository: "platform/fleet", Ref: "refs/heads/main", Commit: sha1b, What: Pushed},
	},
	"github push as a form": {
		GitHub, header("X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),
		"payload=" + url.QueryEscape(`{"ref":"refs/tags/v1","after":"`+sha1b+`","repository":{"full_name":"platform/fleet"}}`),
		Hint{Event: "push", Repository: "platform/fleet", Ref: "refs/tags/v1", Commit: sha1b, What: Pushed},
	},
	"github deleted branch": {
		GitHub, header("X-GitHub-Event", "push"), `{"ref":"refs/heads/old","after":"` + none + `","deleted":true,"repository":{"full_name":"platform/fleet"}}`,
		Hint{Event: "push", Repository: "platform/fleet", Ref: "refs/heads/old", What: Pushed},
	},
	"github pull request": {
		GitHub, header("X-GitHub-Event", "pull_request"),
		`{"action":"synchronize","number":7,"pull_request":{"number":7,"head":{"ref":"x","sha":"` + sha1b + `"}},"repository":{"full_name":"platform/fleet"},"sender":{"login":"ada","id":1}}`,
		Hint{Event: "pull_request", Repository: "platform/fleet", Ref: "refs/pull/7/head", Commit: sha1b, What: Changed, Number: 7, Sender: "ada"},
	},
	"github ping":       {GitHub, header("X-GitHub-Event", "ping"), `{"zen":"Keep it logically awesome."}`, Hint{Event: "ping"}},
	"github own status": {GitHub, header("X-GitHub-Event", "status"), `{"context":"prod/apply"}`, Hint{Event: "status"}},
	"github check":      {GitHub, header("X-GitHub-Event", "check_run"), `not even JSON`, Hint{Event: "check_run"}},
	"github comment": {
		GitHub, header("X-GitHub-Event", "issue_comment", "X-GitHub-Delivery", "d-2"),
		`{"action":"created","issue":{"number":7,"title":"x","pull_request":{"url":"https://api.github.com/repos/platform/fleet/pulls/7","merged_at":null}},"comment":{"id":1,"body":"weir plan"},"repository":{"full_name":"platform/fleet"},"sender":{"login":"ada"}}`,
		Hint{Event: "issue_comment", Delivery: "d-2", Repository: "platform/fleet", What: Commented, Number: 7, Sender: "ada", Comment: Heard{ID: 1, Sum: SumOf("weir plan")}},
	},
	"github comment on an issue": {
		GitHub, header("X-GitHub-Event", "issue_comment"), `{"action":"created","issue":{"number":7},"repository":{"full_name":"platform/fleet"},"sender":{"login":"ada"}}`,
		Hint{Event: "issue_comment"},
	},
	"github comment taken back": {
		GitHub, header("X-GitHub-Event", "issue_comment"), `{"action":"deleted","issue":{"number":7,"pull_request":{}},"repository":{"full_name":"platform/fleet"}}`,
		Hint{Event: "issue_comment"},
	},
	"github label": {
		GitHub, header("X-GitHub-Event", "pull_request"), `{"action":"labeled","number":7,"label":{"name":"safe"},"pull_request":{"head":{"sha":"` + sha1b + `"}},"repository":{"full_name":"platform/fleet"},"sender":{"login":"ada"}}`,
		Hint{Event: "pull_request", Repository: "platform/fleet", Ref: "refs/pull/7/head", Commit: sha1b, What: Changed, Number: 7, Sender: "ada"},
	},
	"gitea comment": {
		Gitea, header("X-Gitea-Event", "issue_comment", "X-Gitea-Event-Type", "pull_request_comment"),
		`{"action":"created","issue":{"id":4,"number":3,"pull_request":{"merged":false,"merged_at":null}},"comment":{"id":9,"body":"weir help"},"repository":{"full_name":"platform/fleet"},"sender":{"id":1,"login":"ada"},"is_pull":true}`,
		Hint{Event: "issue_comment", Repository: "platform/fleet", What: Commented, Number: 3, Sender: "ada", Comment: Heard{ID: 9, Sum: SumOf("weir help")}},
	},
	"gitea comment on an issue": {
		Gitea, header("X-Gitea-Event", "issue_comment"), `{"action":"created","issue":{"number":3,"pull_request":null},"repository":{"full_name":"platform/fleet"},"is_pull":false}`,
		Hint{Event: "issue_comment"},
	},
	"gitlab note": {
		GitLab, header("X-Gitlab-Event", "Note Hook"),
		`{"object_kind":"note","event_type":"note","user":{"id":1,"username":"ada"},"project_id":5,"project":{"path_with_namespace":"platform/fleet"},"object_attributes":{"id":1244,"note":"weir plan","noteable_type":"MergeRequest","noteable_id":7,"system":false},"merge_request":{"id":7,"iid":9}}`, //nolint:misspell // GitLab spells it so
		Hint{Event: "Note Hook", Repository: "platform/fleet", What: Commented, Number: 9, Sender: "ada", Comment: Heard{ID: 1244, Sum: SumOf("weir plan")}},
	},
	"gitlab note, edited": {
		GitLab, header("X-Gitlab-Event", "Note Hook"),
		`{"object_kind":"note","user":{"username":"ada"},"project":{"path_with_namespace":"platform/fleet"},"object_attributes":{"id":1244,"note":"weir approve","action":"update","noteable_type":"MergeRequest"},"merge_request":{"iid":9}}`, //nolint:misspell // GitLab spells it so
		Hint{Event: "Note Hook", Repository: "platform/fleet", What: Commented, Number: 9, Sender: "ada", Comment: Heard{ID: 1244, Sum: SumOf("weir approve"), Edited: true}},
	},
	"gitea comment, edited": {
		Gitea, header("X-Gitea-Event", "issue_comment", "X-Gitea-Event-Type", "pull_request_comment"),
		`{"action":"edited","changes":{"body":{"from":"looks good"}},"issue":{"number":3,"pull_request":{}},"comment":{"id":9,"body":"weir approve"},"repository":{"full_name":"platform/fleet"},"sender":{"login":"mallory"}}`,
		Hint{Event: "issue_comment", Repository: "platform/fleet", What: Commented, Number: 3, Sender: "mallory", Comment: Heard{ID: 9, Sum: SumOf("weir approve"), Edited: true}},
	},
	"gitlab note on a commit": {
		GitLab, header("X-Gitlab-Event", "Note Hook"), `{"object_kind":"note","user":{"username":"ada"},"project":{"path_with_namespace":"platform/fleet"},"object_attributes":{"noteable_type":"Commit"}}`, //nolint:misspell // GitLab spells it so
		Hint{Event: "Note Hook"},
	},
	"gitea push": {
		Gitea, header("X-Gitea-Event", "push", "X-Gitea-Delivery", "u-1", "X-GitHub-Event", "push", "X-GitHub-Delivery", "u-1"),
		`{"ref":"refs/heads/main","before":"` + none + `","after":"` + sha1b + `","total_commits":0,"repository":{"full_name":"platform/fleet","clone_url":"x"}}`,
		Hint{Event: "push", Delivery: "u-1", Repository: "platform/fleet", Ref: "refs/heads/main", Commit: sha1b, What: Pushed},
	},
	"forgejo goes first": {
		Gitea, header("X-Forgejo-Event", "push", "X-Gitea-Event", "other", "X-Forgejo-Delivery", "f", "X-Gitea-Delivery", "g"), `{"ref":"refs/heads/main"}`,
		Hint{Event: "push", Delivery: "f", Ref: "refs/heads/main", What: Pushed},
	},
	"gitea deleted branch": {
		Gitea, header("X-Gitea-Event", "delete"), `{"ref":"main","ref_type":"branch","repository":{"full_name":"platform/fleet"}}`,
		Hint{Event: "delete", Repository: "platform/fleet", Ref: "refs/heads/main", What: Pushed},
	},
	"gitea made tag": {
		Gitea, header("X-Gitea-Event", "create"), `{"ref":"v1","ref_type":"tag","sha":"` + sha1b + `","repository":{"full_name":"platform/fleet"}}`,
		Hint{Event: "create", Repository: "platform/fleet", Ref: "refs/tags/v1", Commit: sha1b, What: Pushed},
	},
	"gitea synchronized": {
		Gitea, header("X-Gitea-Event", "pull_request", "X-Gitea-Event-Type", "pull_request_sync"), `{"action":"synchronized","number":3,"pull_request":{"head":{"sha":"` + sha1b + `"}},"repository":{"full_name":"platform/fleet"},"sender":{"login":"ada"}}`,
		Hint{Event: "pull_request", Repository: "platform/fleet", Ref: "refs/pull/3/head", Commit: sha1b, What: Changed, Number: 3, Sender: "ada"},
	},
	"gitlab push": {
		GitLab, header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", "e", "Idempotency-Key", "i"),
		`{"object_kind":"push","event_name":"push","ref":"refs/heads/main","after":"` + sha1b + `","checkout_sha":"` + sha1b + `","project":{"id":15,"path_with_namespace":"company/platform/fleet"}}`,
		Hint{Event: "Push Hook", Delivery: "i", Repository: "company/platform/fleet", Ref: "refs/heads/main", Commit: sha1b, What: Pushed},
	},
	"gitlab system push": {
		GitLab, header("X-Gitlab-Event", "System Hook"), `{"event_name":"push","ref":"refs/heads/main","after":"` + sha1b + `","project":{"path_with_namespace":"platform/fleet"}}`,
		Hint{Event: "System Hook", Repository: "platform/fleet", Ref: "refs/heads/main", Commit: sha1b, What: Pushed},
	},
	"gitlab system project": {GitLab, header("X-Gitlab-Event", "System Hook"), `{"event_name":"project_create","name":"x"}`, Hint{Event: "System Hook"}},
	"gitlab merge request": {
		GitLab, header("X-Gitlab-Event", "Merge Request Hook"), `{"object_kind":"merge_request","user":{"id":1,"username":"ada"},"project":{"path_with_namespace":"platform/fleet"},"object_attributes":{"iid":9,"last_commit":{"id":"` + sha1b + `"}}}`,
		Hint{Event: "Merge Request Hook", Repository: "platform/fleet", Ref: "refs/merge-requests/9/head", Commit: sha1b, What: Changed, Number: 9, Sender: "ada"},
	},
	"gitlab own pipeline": {GitLab, header("X-Gitlab-Event", "Pipeline Hook"), `{"object_kind":"pipeline"}`, Hint{Event: "Pipeline Hook"}},
	"generic": {
		Generic, header("X-Delivery", "1"), `{"repository":"platform/fleet","ref":"refs/heads/main","commit":"` + sha1b + `","more":[]}`,
		Hint{Delivery: "1", Repository: "platform/fleet", Ref: "refs/heads/main", Commit: sha1b, What: Pushed},
	},
	"generic without a word": {Generic, header(), "", Hint{What: Pushed}},
}

func TestDecode(t *testing.T) {
	for name, tt := range deliveries {
		t.Run(name, func(t *testing.T) {
			got, err := decode(tt.kind, tt.h, []byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		kind Kind
		h    http.Header
		body string
		want string
	}{
		"no event":         {GitHub, header("X-Gitea-Event", "push"), `{}`, "X-GitHub-Event is missing"},
		"no JSON":          {Gitea, header("X-Gitea-Event", "push"), `secret{`, "not the JSON"},
		"other types":      {GitLab, header("X-Gitlab-Event", "Push Hook"), `{"ref":{"a":1}}`, "not the JSON"},
		"a list":           {Generic, header(), `[]`, "not the JSON"},
		"an empty form":    {GitHub, header("X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded"), `a=b`, "without payload"},
		"a very long name": {Generic, header(), `{"ref":"` + strings.Repeat("x", 600) + `"}`, "too long"},
		"another kind":     {"svn", header(), `{}`, "no kind"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(tt.kind, tt.h, []byte(tt.body))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret{") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// FuzzDecode feeds the decoders anything: nothing crashes, and what is said stays bounded.
func FuzzDecode(f *testing.F) {
	for _, d := range deliveries {
		f.Add(string(d.kind), first(d.h, ProfileOf(d.kind).webhook.event), d.h.Get("Content-Type"), []byte(d.body))
	}
	f.Fuzz(func(t *testing.T, kind, event, content string, body []byte) {
		h := http.Header{"Content-Type": {content}}
		for _, p := range profiles() {
			h.Set(p.webhook.event[0], event)
		}
		hint, err := decode(Kind(kind), h, body)
		if err != nil && hint.What != "" && len(hint.Ref) > maxWord {
			t.Errorf("%v and %+v", err, hint)
		}
		if err == nil && (len(hint.Ref) > maxWord || len(hint.Repository) > maxWord || len(hint.Commit) > maxWord || len(hint.Sender) > maxWord || len(hint.Event) > 128) {
			t.Errorf("%+v", hint)
		}
		if err == nil && hint.What == "" && (hint.Ref != "" || hint.Commit != "" || hint.Number != 0) {
			t.Errorf("a hint at nothing that changed: %+v", hint)
		}
		if err == nil && hint.Number != 0 && hint.What != Changed && hint.What != Commented {
			t.Errorf("a number of nothing: %+v", hint)
		}
		names(hint.Repository, "https://git.example.com/platform/fleet.git")
	})
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		repository, address string
		want                bool
	}{
		{"platform/fleet", "https://git.example.com/platform/fleet.git", true},
		{"Platform/Fleet", "https://git.example.com/platform/fleet/", true},
		{"platform/fleet", "git@git.example.com:platform/fleet.git", true},
		{"platform/fleet", "ssh://git@git.example.com:2222/platform/fleet", true},
		{"platform/fleet", "https://git.example.com/gitea/platform/fleet", true},
		{"company/platform/fleet", "https://gitlab.com/company/platform/fleet", true},
		{"https://git.example.com/platform/fleet.git", "git@other:platform/fleet.git", true},
		{"", "https://git.example.com/platform/fleet", true},
		{"form/fleet", "https://git.example.com/platform/fleet", false},
		{"platform/other", "https://git.example.com/platform/fleet", false},
		{"other/platform/fleet", "https://git.example.com/platform/fleet", false},
		{"/", "https://git.example.com/platform/fleet", false},
	} {
		if got := names(tt.repository, tt.address); got != tt.want {
			t.Errorf("Names(%q, %q) = %v", tt.repository, tt.address, got)
		}
	}
}
