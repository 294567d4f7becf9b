package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// The last comment of a pull request is written once, also where who speaks for the source loses its lease, or ends, before the forge takes it.
func TestTheLastCommentOfAPullRequestThatEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("a lease has to end")
	}
	for name := range map[string]bool{"closed": true, "merged": true} {
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
			eventually(t, "a try", func() string {
				if refused.Load() == 0 {
					return "there is none"
				}
				return ""
			})
			before := s.forge.told(1)[0]
			wire.Cut()
			s.owned(s.source(), b)
			refuse.Store(false)
			eventually(t, "the last comment", func() string {
				if told := s.forge.told(1); len(told) != 1 || told[0] == before {
					return fmt.Sprint(told)
				}
				return ""
			})
			text := s.forge.told(1)[0]
			wire.Mend()
			time.Sleep(2 * time.Second)
			if told := s.forge.told(1); len(told) != 1 || !strings.Contains(strings.ToLower(told[0]), name) {
				t.Errorf("it says %v", told)
			} else if name == "closed" && (told[0] != text || edits.Load() != 1) {
				t.Errorf("written %d times: %s", edits.Load(), told[0])
			}
		})
	}
}
