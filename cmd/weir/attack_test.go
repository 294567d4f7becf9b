package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
)

// Attacks on weir that worked once, from a repository or a pull request, under the
// memory that a unit or a pod of it has.

// besiegedTargets is a target that stands by itself, and those of a path with a
// wildcard.
const besiegedTargets = "- {name: steady, path: steady, region: eu-west-1}\n- {name: 'o-{1}', path: 'o/*', region: eu-west-1}\n"

// steady has the first target converge at a commit.
func (b *besieged) steady(max int) string {
	b.t.Helper()
	b.repo.Write(map[string]string{"steady/pool.yaml": fleettest.Pool("steady", "${MAX:=3}", fmt.Sprint(max)), "o/one/pool.yaml": fleettest.Pool("one")})
	sha := b.repo.Commit(fmt.Sprintf("steady with up to %d", max))
	b.tells(sha, "fleet/apply", "success", "")
	return sha
}

// A pull request of a few objects stands for 20,000 targets, by directories that are
// one object.
func TestAPullRequestWithVeryManyTargets(t *testing.T) {
	b := besiege(t, besiegedTargets, "")
	b.start()
	b.steady(3)
	one := b.tree("100644 blob " + b.blob(fleettest.Pool("p")) + "\tpool.yaml")
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf("040000 tree %s\td%05d", one, i))
	}
	steady := b.repo.Git("rev-parse", "main:steady")
	head := b.propose(1, b.tree("040000 tree "+steady+"\tsteady", "040000 tree "+b.tree(many...)+"\to"))
	b.tells(head, "fleet/plan", "failure", "20000 targets")
	b.until("the comment", func() string {
		if says := b.forge.told(1); !strings.Contains(says, "limits.targets allows 4000") {
			return says
		}
		return ""
	})
	b.steady(4) // what is followed goes on
	b.stop()
}
