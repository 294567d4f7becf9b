package report_test

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestWebLinks(t *testing.T) {
	at := diag.Position{File: "overlays/prod eu/pöol#1.yaml", Line: 12, Column: 3}
	for _, c := range []struct{ address, kind, commit, file, pull string }{
		{"https://github.com/acme/fleet.git", "", "https://github.com/acme/fleet/commit/", "https://github.com/acme/fleet/blob/", "https://github.com/acme/fleet/pull/7"},
		{"git@github.com:acme/fleet.git", "", "https://github.com/acme/fleet/commit/", "https://github.com/acme/fleet/blob/", "https://github.com/acme/fleet/pull/7"},
		{"ssh://git@gitlab.example.com:2222/a/b/c.git", "", "https://gitlab.example.com/a/b/c/-/commit/", "https://gitlab.example.com/a/b/c/-/blob/", "https://gitlab.example.com/a/b/c/-/merge_requests/7"},
		{"http://127.0.0.1:3000/weir/fleet", "gitea", "http://127.0.0.1:3000/weir/fleet/commit/", "http://127.0.0.1:3000/weir/fleet/src/commit/", "http://127.0.0.1:3000/weir/fleet/pulls/7"},
		{"https://user:hunter2@git.example.com/o/r", "forgejo", "https://git.example.com/o/r/commit/", "https://git.example.com/o/r/src/commit/", "https://git.example.com/o/r/pulls/7"},
		{"https://git.example.com/o/r", "", "", "", ""},
		{"/srv/git/fleet.git", "gitea", "", "", ""},
		{"file:///srv/fleet", "github", "", "", ""},
		{"", "github", "", "", ""},
	} {
		l := report.NewLinks(c.address, c.kind)
		commit, file := c.commit, c.file
		if commit != "" {
			commit, file = commit+statustest.ShaNew, file+statustest.ShaNew+"/overlays/prod%20eu/p%C3%B6ol%231.yaml#L12"
		}
		if got := l.Commit(statustest.ShaNew); got != commit {
			t.Errorf("%s: commit %q, want %q", c.address, got, commit)
		}
		if got := l.File(statustest.ShaNew, at); got != file {
			t.Errorf("%s: file %q, want %q", c.address, got, file)
		}
		if got := l.Pull(7); got != c.pull {
			t.Errorf("%s: pull request %q, want %q", c.address, got, c.pull)
		}
	}
	if got := report.NewLinks("javascript:alert(1)//github.com/o/r", "github").Commit(statustest.ShaNew); !strings.HasPrefix(got, "https://") {
		t.Errorf("an address that is a script gives the link %s", got)
	}
	if got := report.NewLinks("https://github.com/o/r", "").Commit("main; rm -rf"); got != "" {
		t.Errorf("what is no hash gives the link %s", got)
	}
}

// A link leads to the repository's own host and nowhere else, whatever is in Git.
func TestWebLinksStayOnTheirHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := diag.Position{File: rapid.String().Draw(t, "file"), Line: rapid.Int().Draw(t, "line")}
		got := report.NewLinks("https://github.com/acme/fleet.git", "").File(statustest.ShaNew, at)
		if got == "" {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host != "github.com" || u.RawQuery != "" || strings.Contains(u.Path+"/", "/../") || !strings.HasPrefix(u.EscapedPath(), "/acme/fleet/blob/"+statustest.ShaNew+"/") {
			t.Fatalf("%q gives %s", at.File, got)
		}
	})
}
