package forge

import (
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
)

func TestWebLinks(t *testing.T) {
	at := diag.Position{File: "overlays/prod eu/pöol#1.yaml", Line: 12, Column: 3}
	for _, c := range []struct {
		address            string
		kind               Kind
		commit, file, pull string
	}{
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
		l := NewLinks(c.address, c.kind)
		commit, file := c.commit, c.file
		if commit != "" {
			commit, file = commit+sha1b, file+sha1b+"/overlays/prod%20eu/p%C3%B6ol%231.yaml#L12"
		}
		if got := l.Commit(sha1b); got != commit {
			t.Errorf("%s: commit %q, want %q", c.address, got, commit)
		}
		if got := l.File(sha1b, at); got != file {
			t.Errorf("%s: file %q, want %q", c.address, got, file)
		}
		if got := l.Pull(7); got != c.pull {
			t.Errorf("%s: pull request %q, want %q", c.address, got, c.pull)
		}
	}
	if got := NewLinks("javascript:alert(1)//github.com/o/r", "github").Commit(sha1b); !strings.HasPrefix(got, "https://") {
		t.Errorf("an address that is a script gives the link %s", got)
	}
	if got := NewLinks("https://github.com/o/r", "").Commit("main; rm -rf"); got != "" {
		t.Errorf("what is no hash gives the link %s", got)
	}
}

// A link leads to the repository's own host and nowhere else, whatever is in Git.
func TestWebLinksStayOnTheirHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := diag.Position{File: rapid.String().Draw(t, "file"), Line: rapid.Int().Draw(t, "line")}
		got := NewLinks("https://github.com/acme/fleet.git", "").File(sha1b, at)
		if got == "" {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.Host != "github.com" || u.RawQuery != "" || strings.Contains(u.Path+"/", "/../") || !strings.HasPrefix(u.EscapedPath(), "/acme/fleet/blob/"+sha1b+"/") {
			t.Fatalf("%q gives %s", at.File, got)
		}
	})
}

// TestLinksBeside: the address of a pull request names its repository, or nothing.
func TestLinksBeside(t *testing.T) {
	for pull, want := range map[string]string{
		"https://git.example.com/o/r/pulls/7":  "https://git.example.com/o/r",
		"http://[::1]:3000/o/r/pulls/7":        "http://[::1]:3000/o/r",
		"https://git.example.com/o/r/pulls/7?": "",
		"https://git.example.com/o/r/issues/7": "",
		"":                                     "",
	} {
		if got := ProfileOf(Gitea).LinksBeside(pull).Repository(); got != want {
			t.Errorf("%s: %q, want %q", pull, got, want)
		}
	}
	if got := ProfileOf("svn").LinksBeside("https://git.example.com/o/r/pulls/7"); got != (Links{}) {
		t.Errorf("an unknown kind of forge has the links of %q", got.Repository())
	}
	l := ProfileOf(GitLab).LinksBeside("https://git.example.com/o/r/-/merge_requests/7")
	for file, want := range map[string]string{
		"a b/(x).yaml": "https://git.example.com/o/r/-/blob/" + sha1b + "/a%20b/%28x%29.yaml#L3",
		"../x":         "", "/etc/passwd": "", "a//b": "",
	} {
		if got := l.File(sha1b, diag.Position{File: file, Line: 3}); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
