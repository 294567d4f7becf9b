package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/members"
)

// All members see that one works by another configuration, and nobody deletes machines until that has ended, as after a reload.
func TestWhileConfigurationsDifferNothingIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "batch": pool("batch", "m5.large", 3)}))
	first := s.repo.Commit("first")
	s.load = func() (*config.Config, error) { return s.settings(s.reloads), nil }
	s.extra = "  maxConcurrentRollouts: 3\n"
	a := s.member("a")
	defer a.stop()
	s.extra = ""
	b := s.member("b")
	defer b.stop()
	s.owned(s.scope(), b)
	converged(t, b.App, first, 2)
	for m, other := range map[*member]string{a: "b", b: "a"} {
		eventually(t, "the difference", func() string {
			var v members.View
			m.get(t, "/api/v1/members", &v)
			if d := v.Different(); len(d) != 1 || d[0].Name != other || !slices.Equal(d[0].Differs, []string{"targets"}) {
				return fmt.Sprintf("%+v", v)
			}
			return ""
		})
	}
	if text := a.get(t, "/metrics", nil); !strings.Contains(text, "weir_coordination_configurations_different 1\n") {
		t.Error("the metrics do not have it")
	}
	if text := a.get(t, "/members", nil); !strings.Contains(text, "its configuration differs in targets") {
		t.Errorf("the page: %s", text)
	}

	s.repo.Remove("overlays/prod/batch.yaml")
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	second := s.repo.Commit("second")
	eventually(t, "what is kept", func() string {
		r, _ := b.current.Targets.Find("prod")
		if r.Last == nil || r.Last.Revision != second || r.Last.Plan == nil {
			return fmt.Sprintf("%+v", r.Last)
		}
		for _, d := range r.Last.Plan.Diagnostics {
			if d.Code == "orphan-kept" && strings.Contains(d.Summary, "the configuration of the member a differs in targets") {
				return ""
			}
		}
		return fmt.Sprintf("%+v", r.Last.Plan.Diagnostics)
	})
	if gone := s.deletes(); len(gone) > 0 {
		t.Errorf("deleted while configurations differ: %v", gone)
	}
	s.reloads = "a"
	a.reloadDue.send()
	eventually(t, "the deletion once both have the same", func() string {
		if n := s.aws.CallCounts()["ec2:DeleteLaunchTemplate"]; n != 1 {
			return fmt.Sprintf("%d templates deleted, %v", n, s.deletes())
		}
		return ""
	})
	converged(t, a.App, second, 1)
}
