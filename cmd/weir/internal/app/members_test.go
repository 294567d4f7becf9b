package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/members"
)

func (m *member) get(t *testing.T, path string, into any) string {
	t.Helper()
	res, err := http.Get(m.PageURL() + path) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v: %s", path, res.Status, err, body)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
	}
	return string(body)
}

func (m *member) post(t *testing.T, path string, move commands.Move) (out commands.Moved) {
	t.Helper()
	body, err := json.Marshal(move)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.PageURL()+path, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(commands.Header, "1")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", path, res.Status, err)
	}
	return out
}

// owner waits until a member shows who owns what a target is in.
func (m *member) owner(t *testing.T, target, want string) {
	t.Helper()
	eventually(t, "the owner of "+target, func() string {
		var v members.View
		m.get(t, "/api/v1/members", &v)
		if o, ok := v.OwnerOf(target); !ok || o.Owner != want {
			return fmt.Sprintf("%+v", v)
		}
		return ""
	})
}

// Any member shows who owns what, and moves what another one owns.
func TestMembersAreShownAndMoved(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	s.owned(s.scope(), b)
	converged(t, a.App, first, 1)
	a.owner(t, "prod", "b")

	s.owned(s.source(), a) // b may have begun before a could
	var v members.View
	eventually(t, "what a says of itself", func() string {
		a.get(t, "/api/v1/members", &v)
		if len(v.Members) != 2 || v.Members[0].Sources != 1 {
			return fmt.Sprintf("%+v", v)
		}
		return ""
	})
	if len(v.Members) != 2 || !v.Members[0].Answers || v.Members[1].Scopes != 1 || v.Members[0].Sources != 1 || v.Engine.Error != "" || len(v.Owned) != 2 || !slices.Equal(v.Owned[1].Targets, []string{"pools"}) && len(v.Owned[1].Targets) != 1 {
		t.Errorf("%+v", v)
	}
	if text := a.get(t, "/targets/prod", nil); !strings.Contains(text, "<dt>Owner</dt><dd>b") {
		t.Errorf("the target's page: %s", text)
	}
	if text := b.get(t, "/metrics", nil); !strings.Contains(text, `weir_coordination_owned{kind="scope"} 1`) || !strings.Contains(text, `weir_coordination_moves_total{event="taken-released",kind="scope"} 1`) || !strings.Contains(text, "weir_coordination_members 2") {
		t.Errorf("metrics: %s", text)
	}

	// Asked of the member that does not own it: the owner heeds.
	if out := a.post(t, commands.TakePath, commands.Move{Scope: "prod"}); !out.Followed || out.Member != "a" || out.Scope != s.scope() {
		t.Errorf("%+v", out)
	}
	a.owner(t, "prod", "a")
	b.owner(t, "prod", "a")
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	converged(t, b.App, s.repo.Commit("second"), 1)

	if out := b.post(t, commands.DrainPath, commands.Move{Member: "a"}); !out.Followed || out.Left != 0 {
		t.Errorf("%+v", out)
	}
	b.owner(t, "prod", "b")
	if text := b.get(t, "/readyz", nil); !strings.HasPrefix(text, "ready") {
		t.Error(text)
	}
	eventually(t, "events", func() string {
		var kinds []string
		for _, e := range b.current.Activity.Events() {
			kinds = append(kinds, e.Kind)
		}
		for _, want := range []string{"owner-changed", "command-given", "member-joined"} {
			if !slices.Contains(kinds, want) {
				return fmt.Sprint(want, " is not among ", kinds)
			}
		}
		return ""
	})
	b.stop()
}
