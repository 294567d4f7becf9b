package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state"
)

// The last comment of a pull request is written once, also where who speaks for the source loses its lease, or ends, before the forge takes it.
func TestTheLastCommentOfAPullRequestThatEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set: this test waits until a lease ends")
	}
	for _, name := range []string{"closed", "merged"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeveral(t)
			var refuse atomic.Bool
			var refused, edits atomic.Int64
			forge := s.forge.mux
			s.forge.wrap(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/issues/") && strings.HasSuffix(strings.TrimRight(r.URL.Path, "0123456789"), "/comments/") && r.Method == http.MethodPatch {
					if refuse.Load() {
						refused.Add(1)
						http.Error(w, `{"message":"busy"}`, http.StatusServiceUnavailable)
						return
					}
					edits.Add(1)
				}
				forge.ServeHTTP(w, r)
			})
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := s.repo.Commit("first")
			wire := coordtest.NewWire(s.store)
			a, b := s.memberOver("a", wire), s.member("b")
			defer b.stop()
			defer a.stop()
			s.owned(s.source(), a)
			converged(t, b.App, first, 1)
			change := overlay(map[string]string{"web": pool("web", "m5.large", 5)})
			head := s.propose(1, change)
			s.told(head, "fleet/plan", "success", "")
			eventually(t, "the comment", func() string {
				if told := s.forge.told(1); len(told) != 1 || !strings.Contains(told[0], "maxSize") && !strings.Contains(told[0], "MaxSize") && !strings.Contains(told[0], "web") {
					return fmt.Sprint(told)
				}
				return ""
			})
			refuse.Store(true)
			edits.Store(0)
			if name == "merged" {
				s.repo.Git("update-ref", "refs/heads/main", head)
				s.forge.change(1, func(p *fakePull) { p.state, p.merged = "closed", head })
			} else {
				s.forge.change(1, func(p *fakePull) { p.state = "closed" })
			}
			inState := `"state": "` + name + `"`
			eventually(t, "the end, and a try to say it", func() string {
				switch p, _ := a.current.Pulls.Find("pools", 1); {
				case string(p.State) != name || name == "merged" && !p.Compared:
					return fmt.Sprintf("%+v", p)
				case refused.Load() == 0:
					return "nothing was tried"
				}
				return ""
			})
			eventually(t, "that b knows the end", func() string {
				if shown := b.get(t, "/api/v1/pulls", nil); !strings.Contains(shown, inState) {
					return shown
				}
				return ""
			})
			before := s.forge.told(1)[0]
			wire.Cut()
			s.owned(s.source(), b)
			tries := refused.Load()
			eventually(t, "a try of the next one, on whose page the pull request has ended all the time", func() string {
				if shown := b.get(t, "/api/v1/pulls", nil); !strings.Contains(shown, inState) {
					t.Errorf("it shows %s", shown)
				}
				if refused.Load() == tries {
					return "nothing was tried"
				}
				return ""
			})
			refuse.Store(false)
			says := map[string]string{"closed": "none of its changes are applied", "merged": "The plan of the merge matches the reviewed plan"}[name]
			eventually(t, "the last comment", func() string {
				if told := s.forge.told(1); len(told) != 1 || told[0] == before || !strings.Contains(told[0], says) {
					return fmt.Sprint(told)
				}
				return ""
			})
			text := s.forge.told(1)[0]
			wire.Mend()
			eventually(t, "that a lives again", func() string {
				if a.member.Keeper.Session() == nil {
					return "it has no session"
				}
				return ""
			})
			eventually(t, "that nothing more is remembered", func() string {
				left := ""
				err := b.store.View(func(tx *state.Tx) error {
					return state.Bucket[json.RawMessage]{Name: "pulls"}.ForEach(tx, "", func(_ string, v json.RawMessage) error { left = string(v); return nil })
				})
				if err != nil {
					return err.Error()
				}
				return left
			})
			b.gen.Load().publisher.review.watcher("pools").Changed(1)
			s.owned(s.source(), b)
			if told := s.forge.told(1); len(told) != 1 || told[0] != text || edits.Load() != 1 {
				t.Errorf("written %d times: %v", edits.Load(), told)
			}
		})
	}
}
