package source_test

import (
	"crypto/sha1" //nolint:gosec // Git's names
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// branchy is a history with branches and merges, main at its end.
func branchy(t *testing.T) (repo *sourcetest.Repo, all map[string]string) {
	t.Helper()
	repo = sourcetest.New(t)
	commit := func(name string) string {
		repo.Write(map[string]string{name: name})
		return repo.Commit(name)
	}
	all = map[string]string{"one": commit("one"), "two": commit("two")}
	repo.Branch("topic", all["one"])
	repo.Switch("topic")
	all["topic"] = commit("topic")
	repo.Switch("main")
	all["three"] = commit("three")
	tree := repo.Git("rev-parse", all["three"]+"^{tree}")
	all["merge"] = repo.Git("commit-tree", tree, "-p", all["three"], "-p", all["topic"], "-m", "merge")
	repo.Branch("main", all["merge"])
	all["four"] = commit("four")
	return repo, all
}

// Git is asked about every pair of commits.
func TestDescendsIsGits(t *testing.T) {
	t.Parallel()
	repo, all := branchy(t)
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

// What a branch loses is what Git says, and once the mirror is made again what was lost before.
func TestLostIsGits(t *testing.T) {
	t.Parallel()
	repo, all := branchy(t)
	for where, cfg := range map[string]source.Config{"http": {URL: repo.URL()}, "local": {URL: repo.Dir()}} {
		t.Run(where, func(t *testing.T) {
			g := open(t, cfg, source.Options{})
			latest(t, g)
			for a, from := range all {
				for b, to := range all {
					got, err := g.Lost(t.Context(), from, to)
					want := strings.Fields(repo.Git("rev-list", "--date-order", from, "^"+to))
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
						t.Errorf("from %s to %s: %v (-git +weir):\n%s", a, b, err, diff)
					}
				}
			}
			if got, err := g.Lost(t.Context(), strings.Repeat("1", 40), all["four"]); len(got) > 0 || err != nil {
				t.Errorf("of a commit that is nowhere: %v, %v", got, err)
			}
			if _, err := g.Lost(t.Context(), "abc1234", all["four"]); err == nil {
				t.Error("a short name is no error")
			}
		})
	}
}

// weir says as Git does how a commit stands to a followed one, by full and by short names; commits followed earlier count as much.
func TestStandingsAreGits(t *testing.T) {
	t.Parallel()
	repo, all := branchy(t)
	for where, cfg := range map[string]source.Config{"http": {URL: repo.URL()}, "local": {URL: repo.Dir()}} {
		t.Run(where, func(t *testing.T) {
			g := open(t, cfg, source.Options{})
			latest(t, g)
			for head, own := range all {
				var names []string
				want := map[string]snapshot.Standing{strings.Repeat("1", 40): snapshot.Unknown, "1111111": snapshot.Unknown, "no name": snapshot.Unknown, "ab": snapshot.Unknown}
				for _, other := range all {
					_, behind := repo.Try("merge-base", "--is-ancestor", other, own)
					_, ahead := repo.Try("merge-base", "--is-ancestor", own, other)
					is := snapshot.Aside
					switch {
					case behind == 0:
						is = snapshot.Behind
					case ahead == 0:
						is = snapshot.Ahead
					}
					want[other], want[other[:7]], want[other[:12]] = is, is, is
				}
				// A tree is not a commit, whatever its name.
				want[repo.Git("rev-parse", own+"^{tree}")] = snapshot.Unknown
				for name := range want {
					names = append(names, name)
				}
				for range 2 { // the second answer is remembered
					got, err := g.Standings(t.Context(), []string{own}, names)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("to %s (-git +weir):\n%s", head, diff)
					}
				}
			}
			got, err := g.Standings(t.Context(), []string{all["one"], strings.Repeat("2", 40), all["topic"]}, []string{all["topic"], all["four"], all["two"]})
			want := map[string]snapshot.Standing{all["topic"]: snapshot.Behind, all["four"]: snapshot.Ahead, all["two"]: snapshot.Ahead}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("with a branch that was followed: %v\n%s", err, diff)
			}
			if _, err := g.Standings(t.Context(), []string{strings.Repeat("2", 40)}, []string{all["one"]}); err == nil {
				t.Error("a head that is nowhere is no error")
			}
		})
	}
}

// weir knows a commit once it is fetched, and clocks that lie change nothing.
func TestStandingsOfCommitsThatCome(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	first := repo.Commit("first")
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	latest(t, g)
	tree, last := repo.Git("rev-parse", first+"^{tree}"), first
	var all []string
	for i := range 20 { // each older than the one before
		commit := fmt.Sprintf("tree %s\nparent %s\nauthor A <a@b> %d +0000\ncommitter A <a@b> %[3]d +0000\n\nn\n", tree, last, 1_700_000_000-i*86400)
		last = repo.GitInput([]byte(commit), "hash-object", "-t", "commit", "-w", "--stdin")
		all = append(all, last)
	}
	standings := func(own string) map[string]snapshot.Standing {
		t.Helper()
		got, err := g.Standings(t.Context(), []string{own}, append([]string{first[:8]}, all...))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, name := range all {
		if is := standings(first)[name]; is != snapshot.Unknown {
			t.Errorf("%s is %s before it is there", name, is)
		}
	}
	repo.Branch("main", last)
	latest(t, g)
	for _, name := range all {
		if is := standings(first)[name]; is != snapshot.Ahead {
			t.Errorf("%s is %s of the first", name, is)
		}
		if is := standings(last)[name]; is != snapshot.Behind {
			t.Errorf("%s is %s of the last", name, is)
		}
	}
	if is := standings(last)[first[:8]]; is != snapshot.Behind {
		t.Errorf("the first is %s", is)
	}
}

// Two objects whose names begin alike: one of them may be an earlier commit.
func TestAShortNameOfTwoCommits(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	first := repo.Commit("first")
	tree := repo.Git("rev-parse", first+"^{tree}")
	seen := map[string]string{}
	// Seven digits meet among some twenty thousand.
	for i := 0; ; i++ {
		body := fmt.Sprintf("tree %s\nauthor A <a@b> %d +0000\ncommitter A <a@b> %[2]d +0000\n\nn\n", tree, i)
		sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(body), body)) //nolint:gosec // Git's names
		name := hex.EncodeToString(sum[:])
		if other, met := seen[name[:7]]; met {
			for _, text := range []string{other, body} {
				repo.GitInput([]byte(text), "hash-object", "-t", "commit", "-w", "--stdin")
			}
			own := repo.GitInput(fmt.Appendf(nil, "tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nn\n", tree, name), "hash-object", "-t", "commit", "-w", "--stdin")
			repo.Branch("main", own)
			g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
			latest(t, g)
			got, err := g.Standings(t.Context(), []string{own}, []string{name[:7]})
			if err != nil || got[name[:7]] != snapshot.Behind {
				t.Errorf("got %v, %v", got, err)
			}
			return
		}
		seen[name[:7]] = body
	}
}
