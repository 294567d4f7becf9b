package app

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/status/wording"
)

// One member speaks for a source: each status of a commit is written once, and none by the
// one that applies. When it stops, the other goes on where it was.
func TestACommitGetsEachStatusOnce(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer b.stop()
	s.told(first, "fleet/apply", "success", "1 pool created")
	s.told(first, "fleet/apply/prod", "success", "1 pool created")
	a.stop()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	s.told(second, "fleet/apply", "success", "1 pool updated")
	a = s.member("a")
	defer a.stop()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	third := s.repo.Commit("third")
	s.told(third, "fleet/apply", "success", "1 pool updated")
	for _, sha := range []string{first, second, third} {
		s.succeedsOnce(sha, "fleet/apply", "fleet/apply/prod")
	}
	s.eachStatusOnce()
}

// eachStatusOnce fails if the same status was written twice. A pending status may come back after
// another one: a member that takes over plans again the commit that its predecessor was applying.
func (s *several) eachStatusOnce() {
	s.t.Helper()
	s.forge.mu.Lock()
	defer s.forge.mu.Unlock()
	for sha, list := range s.forge.statuses {
		seen, latest := map[string]bool{}, map[string]string{}
		for _, st := range list {
			name, key := fmt.Sprint(st["context"]), fmt.Sprint(st["context"], st["state"], st["description"])
			if seen[key] && (latest[name] == key || st["state"] != "pending") {
				s.t.Errorf("%s got a status twice: %s", wording.Short(sha), key)
			}
			seen[key], latest[name] = true, key
		}
	}
}
