package giteatest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// open makes a client of a repository with a token.
func open(t *testing.T, s *giteatest.Server, r *giteatest.Repository, token string) forge.Client {
	t.Helper()
	c, err := forge.New(forge.ClientOptions{
		Kind: forge.Gitea, URL: s.URL, Repository: r.Owner.Name + "/" + r.Name, Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until wrong says nothing: Gitea does much in the background.
func eventually(t *testing.T, what string, wrong func() string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		why := wrong()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, why)
		}
	}
}

var scopes = []string{"write:repository", "write:issue", "read:user"}

// TestGiteaClient holds what package forge takes for Gitea's behaviour against it.
func TestGiteaClient(t *testing.T) {
	s := giteatest.New(t)
	owner, weir, writer, reader, stranger := s.User("owner"), s.User("weir-bot"), s.User("writer"), s.User("reader"), s.User("outsider")
	r := owner.Repository("fleet")
	r.Grant(weir, "admin")
	r.Grant(writer, "write")
	r.Grant(reader, "read")
	client := open(t, s, r, weir.Token(scopes...))
	if list, _, unchanged, err := client.Pulls(t.Context(), ""); len(list) > 0 || unchanged || err != nil {
		t.Errorf("before the first push: %v, %t, %v", list, unchanged, err)
	}
	c := r.Clone(owner)
	c.Write(map[string]string{"a.txt": "one\n"})
	base := c.Push("main", "first")
	pull := func(n int64) forge.PullRequest {
		t.Helper()
		pr, err := client.Pull(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return pr
	}

	t.Run("who", func(t *testing.T) {
		if got, err := client.Self(t.Context()); got != weir.Name || err != nil {
			t.Errorf("self: %q, %v", got, err)
		}
		for user, want := range map[string]forge.Level{
			owner.Name: forge.Admin, weir.Name: forge.Admin, writer.Name: forge.Write, reader.Name: forge.Read, strings.ToUpper(writer.Name): forge.Write,
			stranger.Name: forge.None, "nobody-of-this-name": forge.None, "..": forge.None,
		} {
			if got, err := client.Permission(t.Context(), user); got != want || err != nil {
				t.Errorf("%s: %s, %v, want %s", user, got, err, want)
			}
		}
	})

	var list []forge.PullRequest
	var cursor forge.Cursor
	var err error
	eventually(t, "the list after the first push", func() string {
		list, cursor, _, err = client.Pulls(t.Context(), "")
		var refusal *forgehttp.Error
		if errors.As(err, &refusal) && refusal.Fault == forgehttp.FaultMissing {
			return err.Error() // Gitea processes the push, and weir tries again
		}
		return ""
	})
	if len(list) > 0 || err != nil {
		t.Fatalf("no pull request yet: %v, %v", list, err)
	}
	c.Git("switch", "--quiet", "--create", "change")
	c.Write(map[string]string{"a.txt": "two\n"})
	head := c.Push("change", "a change")
	number := r.Open(owner, "change", "A change")
	t.Run("open", func(t *testing.T) {
		pr := pull(number)
		if pr.HeadSHA != head || pr.HeadRef != "change" || pr.BaseRef != "main" || pr.BaseSHA != base || pr.State != forge.Open || pr.Draft || pr.Fork || pr.Author != owner.Name || pr.MergeSHA != "" {
			t.Errorf("%+v", pr)
		}
		var unchanged bool
		if list, cursor, unchanged, err = client.Pulls(t.Context(), cursor); unchanged || err != nil || len(list) != 1 || list[0].HeadSHA != head {
			t.Fatalf("%v, %t, %v", list, unchanged, err)
		}
		if list, cursor, unchanged, err = client.Pulls(t.Context(), cursor); !unchanged || err != nil || list != nil {
			t.Errorf("the same again: %v, %t, %v", list, unchanged, err)
		}
		ref := strings.Fields(c.Git("ls-remote", "origin", client.Profile().HeadRef(number)))
		if len(ref) == 0 || ref[0] != head {
			t.Errorf("%s is at %v", client.Profile().HeadRef(number), ref)
		}
	})
	t.Run("pushed to", func(t *testing.T) {
		c.Write(map[string]string{"a.txt": "three\n"})
		c.Git("add", "--all")
		c.Git("commit", "--quiet", "--amend", "--message", "another")
		c.Git("push", "--quiet", "--force", "origin", "HEAD:refs/heads/change")
		moved := c.Git("rev-parse", "HEAD")
		eventually(t, "the new head", func() string {
			got, next, unchanged, err := client.Pulls(t.Context(), cursor)
			if err != nil || unchanged || len(got) != 1 || got[0].HeadSHA != moved {
				return fmt.Sprintf("%v, %t, %v", got, unchanged, err)
			}
			cursor = next
			return ""
		})
	})
	t.Run("draft and label", func(t *testing.T) {
		owner.Must(http.MethodPatch, r.Path(fmt.Sprintf("/pulls/%d", number)), map[string]any{"title": "WIP: A change"}, nil)
		var label struct {
			ID int64 `json:"id"`
		}
		owner.Must(http.MethodPost, r.Path("/labels"), map[string]any{"name": "weir-plan", "color": "#00aabb"}, &label)
		owner.Must(http.MethodPost, r.Path(fmt.Sprintf("/issues/%d/labels", number)), map[string]any{"labels": []int64{label.ID}}, nil)
		got, next, unchanged, err := client.Pulls(t.Context(), cursor)
		if err != nil || unchanged || len(got) != 1 || !got[0].Draft || !slices.Equal(got[0].Labels, []string{"weir-plan"}) {
			t.Errorf("%v, %t, %v", got, unchanged, err)
		}
		cursor = next
	})
	t.Run("comments", func(t *testing.T) { testComments(t, client, r, number, owner, writer) })
	t.Run("fork", func(t *testing.T) {
		r.Grant(stranger, "read")
		fork := r.Fork(stranger)
		fc := fork.Clone(stranger)
		fc.Git("pull", "--quiet", "origin", "main")
		fc.Write(map[string]string{"a.txt": "of a fork\n"})
		sha := fc.Push("mine", "from outside")
		n := r.Open(stranger, stranger.Name+":mine", "From a fork")
		if pr := pull(n); !pr.Fork || pr.HeadSHA != sha || pr.Author != stranger.Name {
			t.Errorf("%+v", pr)
		}
		stranger.Must(http.MethodDelete, fork.Path(""), nil, nil)
		if pr := pull(n); !pr.Fork || pr.HeadSHA != sha {
			t.Errorf("its repository is gone: %+v", pr)
		}
		owner.Must(http.MethodPatch, r.Path(fmt.Sprintf("/pulls/%d", n)), map[string]any{"state": "closed"}, nil)
		if pr := pull(n); pr.State != forge.Closed {
			t.Errorf("closed: %+v", pr)
		}
	})
	t.Run("pushed for review", func(t *testing.T) {
		rc := r.Clone(reader)
		rc.Git("pull", "--quiet", "origin", "main")
		rc.Write(map[string]string{"b.txt": "of a reader\n"})
		sha := rc.Commit("by who may only read")
		rc.Git("push", "--quiet", "origin", "HEAD:refs/for/main/topic")
		eventually(t, "the pull request", func() string {
			got, _, _, err := client.Pulls(t.Context(), "")
			for _, pr := range got {
				if pr.HeadSHA == sha && !pr.Fork {
					return "who may not push is taken for one who may"
				} else if pr.HeadSHA == sha {
					return ""
				}
			}
			return fmt.Sprintf("%v, %v", got, err)
		})
	})
	for _, style := range []string{"merge", "squash", "rebase", "fast-forward-only"} {
		t.Run("merged by "+style, func(t *testing.T) {
			mc := r.Clone(owner)
			mc.Git("pull", "--quiet", "origin", "main")
			mc.Write(map[string]string{style + ".txt": style + "\n"})
			mc.Push("by-"+style, "a change")
			n := r.Open(owner, "by-"+style, "To be merged by "+style)
			r.Merge(owner, n, style)
			mc.Git("fetch", "--quiet", "origin", "main")
			if pr := pull(n); pr.State != forge.Merged || pr.MergeSHA != mc.Git("rev-parse", "FETCH_HEAD") {
				t.Errorf("%+v", pr)
			}
		})
	}
	t.Run("refused", func(t *testing.T) { testRefused(t, s, r, number, owner, writer) })
}

func testComments(t *testing.T, client forge.Client, r *giteatest.Repository, number int64, owner, writer *giteatest.User) {
	began := time.Now().Add(-time.Minute)
	first := r.Say(owner, number, "weir plan")
	second := r.Say(writer, number, "weir approve\nnow")
	var issue struct {
		Number int64 `json:"number"`
	}
	owner.Must(http.MethodPost, r.Path("/issues"), map[string]any{"title": "No pull request"}, &issue)
	r.Say(owner, issue.Number, "weir plan")
	for name, read := range map[string]func() ([]forge.Comment, error){
		"of one":       func() ([]forge.Comment, error) { return client.Comments(t.Context(), number, began) },
		"of all":       func() ([]forge.Comment, error) { return client.CommentsSince(t.Context(), began) },
		"of all again": func() ([]forge.Comment, error) { return client.CommentsSince(t.Context(), began) },
	} {
		got, err := read()
		if err != nil || len(got) != 2 || got[0].ID != first.ID || got[1].ID != second.ID || got[1].Author != writer.Name || got[1].Body != "weir approve\nnow" || got[1].Number != number {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := client.CommentsSince(t.Context(), time.Now().Add(time.Hour)); len(got) > 0 || err != nil {
		t.Errorf("of the future: %v, %v", got, err)
	}
	// What Gitea noted when a comment was written shows an edit within the same second, too.
	quick := r.Say(writer, number, "looks good")
	writer.Must(http.MethodPatch, r.Path(fmt.Sprintf("/issues/comments/%d", quick.ID)), map[string]any{"body": "weir approve"}, nil)
	whole := r.Say(writer, number, "weir approve\n\n"+strings.Repeat("because it is so ", 30))
	list, err := client.Comments(t.Context(), number, began)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64]forge.Edits{first.ID: forge.Unedited, quick.ID: forge.Edited, whole.ID: forge.Unedited}
	for _, c := range list {
		edits, known := want[c.ID]
		if got, err := client.Edits(t.Context(), c); known && (got != edits || err != nil) {
			t.Errorf("edits of %.20q: %d, %v, want %d", c.Body, got, err, edits)
		}
	}
	for _, c := range []giteatest.Comment{quick, whole} {
		writer.Must(http.MethodDelete, r.Path(fmt.Sprintf("/issues/comments/%d", c.ID)), nil, nil)
	}
	for _, mark := range []forge.Reaction{forge.Eyes, forge.Done, forge.Refused} {
		if err := client.React(t.Context(), number, second.ID, mark); err != nil {
			t.Errorf("%s: %v", mark, err)
		}
	}
	if err := client.React(t.Context(), number, second.ID, forge.Eyes); err != nil {
		t.Errorf("the same mark again: %v", err)
	}
	if got := r.Reactions(second.ID); len(got) != 3 {
		t.Errorf("marks: %v", got)
	}
	made, err := client.CreateComment(t.Context(), number, "It is so.")
	if err != nil {
		t.Error(err)
	}
	time.Sleep(1100 * time.Millisecond)
	edited, err := client.EditComment(t.Context(), number, made.ID, "It is so.\n")
	if err != nil || !edited.UpdatedAt.After(made.UpdatedAt) {
		t.Errorf("made %+v, edited %+v, %v", made, edited, err)
	}
	if list, err := client.Comments(t.Context(), number, began); err != nil || !list[len(list)-1].UpdatedAt.Equal(edited.UpdatedAt) || list[len(list)-1].Body != edited.Body {
		t.Errorf("read back %+v, %v, the answer was %+v", list, err, edited)
	}
	if got := r.Comments(number); len(got) != 3 || strings.TrimSpace(got[2].Body) != "It is so." {
		t.Errorf("%+v", got)
	}
}

// testRefused has tokens that lack one thing each, and wants it named.
func testRefused(t *testing.T, s *giteatest.Server, r *giteatest.Repository, number int64, owner, writer *giteatest.User) {
	comment := r.Comments(number)[0].ID
	pulls := func(c forge.Client) error { _, _, _, err := c.Pulls(t.Context(), ""); return err }
	comments := func(c forge.Client) error { _, err := c.CommentsSince(t.Context(), time.Time{}); return err }
	permission := func(c forge.Client) error { _, err := c.Permission(t.Context(), writer.Name); return err }
	for _, tc := range []struct {
		name  string
		token string
		do    func(forge.Client) error
		want  string
	}{
		{"wrong", strings.Repeat("0123456789", 4), pulls, "the token is not accepted"},
		{"pulls", owner.Token("read:user"), pulls, "read:repository"},
		{"comments", owner.Token("read:repository"), comments, "read:issue"},
		{"reply", owner.Token("read:repository", "read:issue"), func(c forge.Client) error { _, err := c.CreateComment(t.Context(), number, "x"); return err }, "write:issue"},
		{"react", owner.Token("read:repository", "read:issue"), func(c forge.Client) error { return c.React(t.Context(), number, comment, forge.Eyes) }, "write:issue"},
		{"self", owner.Token("read:repository"), func(c forge.Client) error { _, err := c.Self(t.Context()); return err }, "read:user"},
		{"permission's scope", owner.Token("read:user"), permission, "read:repository"},
		{"permission by a writer", writerOf(s, r).Token(scopes...), permission, "administrator of the repository"},
		{"stranger", s.User("alien").Token(scopes...), pulls, "must have access"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.do(open(t, s, r, tc.token))
			var refusal *forgehttp.Error
			if !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultDenied || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), tc.token) {
				t.Error("the error shows the token")
			}
		})
	}
}

func writerOf(s *giteatest.Server, r *giteatest.Repository) *giteatest.User {
	u := s.User("second-writer")
	r.Grant(u, "write")
	return u
}
