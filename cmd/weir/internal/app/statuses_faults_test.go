package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/status/commands"
)

// While a file with values cannot be read, nobody knows what a commit changes of the target:
// it is not said to succeed before it is applied.
func TestACommitWhileValuesCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	values := filepath.Join(w.dir, "values")
	write := func() {
		if err := os.WriteFile(values, []byte("SIZE=3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	conf := w.config()
	conf.Targets[0].VarsFrom = []targetspec.VarsFrom{{File: values}}
	a, stop := w.startConfig(conf, func() (*config.Config, error) { return conf, nil })
	defer stop()
	converged(t, a, first, 1)
	w.told(first, "fleet/apply", "success", "")

	if err := os.Remove(values); err != nil {
		t.Fatal(err)
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	second := w.repo.Commit("second")
	w.told(second, "fleet/apply", "failure", "prod: ")
	if got := w.maxOf("web"); got != "3" {
		t.Errorf("it was applied: %s", got)
	}
	write()
	w.told(second, "fleet/apply", "success", "1 pool updated")
	w.corrected("web", 5)
}

// A commit beside a pool that AWS refuses is not said to succeed: Git's newest word is not
// what AWS holds. Once it is, the commit succeeds, also where no commit has mended it.
func TestACommitBesideARefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "UpdateAutoScalingGroup", Code: "AccessDenied", Status: 403, Times: -1})
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	w.told(w.repo.Commit("second"), "fleet/apply", "failure", "AccessDenied")
	w.repo.Write(map[string]string{"README": "words"})
	words := w.repo.Commit("words")
	w.told(words, "fleet/apply", "failure", "AccessDenied")
	w.told(words, "fleet/apply/prod", "failure", "AccessDenied")
	w.aws.Faults().Clear()
	command(t, a, commands.ReconcilePath, gates.Request{Targets: []string{"prod"}, Retry: true})
	w.told(words, "fleet/apply", "success", "1 pool updated")
	w.told(words, "fleet/apply/prod", "success", "1 pool updated")
}

// A pull request that changes a target whose values cannot be read now is not said to
// affect no target; one beside it is.
func TestAPullRequestWhileValuesCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	values := filepath.Join(w.dir, "values")
	if err := os.WriteFile(values, []byte("SIZE=3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	conf := w.config()
	conf.Targets[0].VarsFrom = []targetspec.VarsFrom{{File: values}}
	a, stop := w.startConfig(conf, nil)
	defer stop()
	converged(t, a, first, 1)
	if err := os.Remove(values); err != nil {
		t.Fatal(err)
	}
	w.told(w.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 5)})), "fleet/plan", "failure", "prod: ")
	w.told(w.propose(2, map[string]string{"README": "words"}), "fleet/plan", "success", "no target affected")
}
