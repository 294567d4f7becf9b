package giteatest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

func teller(t *testing.T, s *giteatest.Server, r *giteatest.Repository, token string) forge.Client {
	t.Helper()
	g, err := forge.New(forge.ClientOptions{
		Kind: forge.Gitea,
		URL:  s.URL, Repository: r.Owner.Name + "/" + r.Name, Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGiteaTeller holds what package status takes for Gitea's behaviour against it.
func TestGiteaTeller(t *testing.T) {
	s := giteatest.New(t)
	owner, weir, reader := s.User("teller"), s.User("teller-weir"), s.User("teller-reader")
	r := owner.Repository("fleet")
	r.Grant(weir, "write")
	r.Grant(reader, "read")
	c := r.Clone(owner)
	c.Write(map[string]string{"a.txt": "one\n"})
	main := c.Push("main", "first")
	c.Git("switch", "--quiet", "--create", "change")
	c.Write(map[string]string{"a.txt": "two\n"})
	c.Push("change", "a change")
	number := r.Open(owner, "change", "A change")
	token := weir.Token(scopes...)
	g := teller(t, s, r, token)

	t.Run("statuses", func(t *testing.T) {
		want := map[string]forge.CommitStatus{}
		for i := range 60 { // more than a page
			st := forge.CommitStatus{Context: fmt.Sprintf("fleet/apply/%02d", i), State: forge.Pending, Description: "planning", TargetURL: "http://127.0.0.1/"}
			if err := g.SetStatus(t.Context(), main, st); err != nil {
				t.Fatal(err)
			}
			want[st.Context] = st
		}
		limits := g.Profile().Limits
		for _, state := range []forge.CommitState{forge.Pending, forge.Failure, forge.Errored, forge.Success} { // within a second, the last one counts
			st := forge.CommitStatus{Context: strings.Repeat("c", limits.Context), State: state, Description: strings.Repeat("é", limits.Description)}
			if err := g.SetStatus(t.Context(), main, st); err != nil {
				t.Fatal(err)
			}
			want[st.Context] = st
		}
		got, err := g.Statuses(t.Context(), main)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d statuses, %v, want %d", len(got), err, len(want))
		}
		for name, st := range want {
			if got[name] != st {
				t.Errorf("%.20s: %+v, want %+v", name, got[name], st)
			}
		}
		_, err = g.Statuses(t.Context(), strings.Repeat("0", 39)+"1")
		var refusal *forgehttp.Error
		if !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultMissing {
			t.Errorf("a commit that is not there yet: %v", err)
		}
		if err := g.SetStatus(t.Context(), strings.Repeat("0", 39)+"1", want["fleet/apply/00"]); !errors.As(err, &refusal) || refusal.Fault != forgehttp.FaultMissing {
			t.Errorf("a status of a commit that is not there yet: %v", err)
		}
	})
	t.Run("comments", func(t *testing.T) {
		if got, err := g.Self(t.Context()); got != weir.Name || err != nil {
			t.Errorf("login %q, %v", got, err)
		}
		marker := report.PullMarker("fleet", "pools")
		texts := []string{marker + "\nfirst", marker + "\n" + strings.Repeat("é", forge.ProfileOf(forge.Gitea).Limits.Comment-len(marker)-1)}
		made, err := g.CreateComment(t.Context(), number, texts[0])
		if err != nil {
			t.Fatal(err)
		}
		id := made.ID
		if _, err := g.EditComment(t.Context(), number, id, texts[1]); err != nil {
			t.Fatal(err)
		}
		for i := range 55 { // more than a page, if there were pages
			r.Say(owner, number, fmt.Sprint("comment ", i))
		}
		list, err := g.Comments(t.Context(), number, time.Time{})
		if err != nil || len(list) != 56 || list[0].ID != id || list[0].Author != weir.Name || len(list[0].Body) < 60_000 || !strings.HasPrefix(texts[1], list[0].Body) || list[55].Body != "comment 54" {
			t.Errorf("%d comments, %v", len(list), err)
		}
		if err := g.DeleteComment(t.Context(), number, id); err != nil {
			t.Error(err)
		}
		var refusal *forgehttp.Error
		if _, err := g.EditComment(t.Context(), number, id, "gone"); !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
			t.Errorf("an edit of what was deleted: %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		write := func(g forge.Client) error { _, err := g.CreateComment(t.Context(), number, "x"); return err }
		set := func(g forge.Client) error {
			return g.SetStatus(t.Context(), main, forge.CommitStatus{Context: "x", State: forge.Pending})
		}
		owner.Must(http.MethodPut, r.Path(fmt.Sprintf("/issues/%d/lock", number)), map[string]any{"lock_reason": "spam"}, nil)
		for _, tc := range []struct {
			name, token string
			do          func(forge.Client) error
			want        string
		}{
			{"wrong", strings.Repeat("0123456789", 4), write, "not accepted"},
			{"comments", weir.Token("write:repository"), write, "write:issue"},
			{"login", weir.Token("write:repository"), func(g forge.Client) error { _, err := g.Self(t.Context()); return err }, "read:user"},
			{"statuses", weir.Token("read:repository", "write:issue"), set, "write:repository"},
			{"statuses by a reader", reader.Token(scopes...), set, "write access"},
			{"locked", reader.Token(scopes...), write, "locked"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				err := tc.do(teller(t, s, r, tc.token))
				if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), tc.token) {
					t.Errorf("%v, want %q", err, tc.want)
				}
			})
		}
	})
}
