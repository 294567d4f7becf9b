package source_test

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// Git is asked about every pair of a history with branches and merges.
func TestDescendsIsGits(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	commit := func(name string) string {
		repo.Write(map[string]string{name: name})
		return repo.Commit(name)
	}
	all := map[string]string{"one": commit("one"), "two": commit("two")}
	repo.Branch("topic", all["one"])
	repo.Switch("topic")
	all["topic"] = commit("topic")
	repo.Switch("main")
	all["three"] = commit("three")
	tree := repo.Git("rev-parse", all["three"]+"^{tree}")
	all["merge"] = repo.Git("commit-tree", tree, "-p", all["three"], "-p", all["topic"], "-m", "merge")
	repo.Branch("main", all["merge"])
	all["four"] = commit("four")
	for where, cfg := range map[string]source.Config{"http": {URL: repo.URL()}, "local": {URL: repo.Dir()}} {
		t.Run(where, func(t *testing.T) {
			g := open(t, cfg, source.Options{})
			latest(t, g)
			for a, revision := range all {
				for b, from := range all {
					_, code := repo.Try("merge-base", "--is-ancestor", from, revision)
					got, err := g.Descends(t.Context(), revision, from)
					if err != nil || got != (code == 0) {
						t.Errorf("%s descends from %s: got %t, %v, Git says %d", a, b, got, err, code)
					}
				}
			}
			if got, err := g.Descends(t.Context(), all["four"], strings.Repeat("1", 40)); got || err != nil {
				t.Errorf("from a commit that is nowhere: %t, %v", got, err)
			}
			if _, err := g.Descends(t.Context(), all["four"], "abc1234"); err == nil {
				t.Error("a short name is no error")
			}
		})
	}
}
