package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// A commit that breaks one target of many holds that one alone: the others follow it.
func TestOneBrokenTargetOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "- {name: dev, path: overlays/dev, region: eu-west-1}\n"
	dev := func(size int) map[string]string {
		return map[string]string{"overlays/dev/kustomization.yaml": "resources: [web.yaml]\n", "overlays/dev/web.yaml": pool("dev-web", "m5.large", size)}
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	w.repo.Write(dev(3))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	w.corrected("dev-web", 3)

	w.repo.Write(dev(5))
	broken := w.breaks("web")
	heldTo(t, a, broken, first)
	w.corrected("dev-web", 5)
	w.byHand("web", 9)
	w.corrected("web", 3)
	eventually(t, "the other target", func() string {
		if s, _ := a.current.Targets.Find("dev"); s.Last == nil || s.Last.Revision != broken || s.Last.Fallback != nil || !s.Last.Converged() {
			return fmt.Sprintf("%+v", s.Last)
		}
		return ""
	})
	if s, _ := a.current.Targets.Find("prod"); s.Last.Converged() || s.Last.Pools[0].Converged {
		t.Error("a target that is held is said to have converged")
	}
	w.told(broken, "fleet/apply", "failure", "prod: ")
	w.told(broken, "fleet/apply/dev", "success", "")
	// The next commit mends nothing of it, and fails as well.
	w.repo.Write(map[string]string{"README": "words"})
	w.told(w.repo.Commit("words"), "fleet/apply", "failure", "prod: ")
}

// Earlier commits are rendered with today's variables. What only those say is not drift; and
// where AWS does not hold what a commit says with them, it is not held to that.
func TestABrokenCommitAndOtherVariables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	web := fleettest.Pool("web", "m5.large", "'${TYPE:=m5.large}'")
	w.repo.Write(overlay(map[string]string{"web": web}))
	first := w.repo.Commit("first")
	next := w.config()
	a, stop := w.startWith(func() (*config.Config, error) { return next, nil })
	defer stop()
	converged(t, a, first, 1)
	before := len(w.writes())
	broken := w.breaks("web")
	heldTo(t, a, broken, first)

	with := func(vars map[string]string) {
		next = w.config()
		next.Targets[0].Vars = vars
		a.reloadDue.send()
	}
	with(map[string]string{"MAX": "4"})
	eventually(t, "what waits", func() string {
		if s, _ := a.current.Targets.Find("prod"); len(s.Last.Pools) == 0 || !strings.Contains(s.Last.Pools[0].Ready().Message, "maxSize differs") {
			return fmt.Sprintf("%+v", s.Last.Pools)
		}
		return ""
	})
	heldTo(t, a, broken, first)
	if got := w.maxOf("web"); got != "3" {
		t.Errorf("a value that no commit has brought was applied: %s", got)
	}
	with(map[string]string{"TYPE": "m5.xlarge"})
	heldTo(t, a, broken, "")
	w.byHand("web", 9)
	began := lastPass(a)
	eventually(t, "two more passes", func() string {
		if !lastPass(a).After(began) {
			return "none"
		}
		return ""
	})
	if got := w.maxOf("web"); got != "9" {
		t.Errorf("what is only observed was written: %s", got)
	}
	with(nil)
	heldTo(t, a, broken, first)
	w.corrected("web", 3)
	w.harmless(before)
}

// Where signatures are asked for since, only commits that have one count.
func TestABrokenCommitAndSignatures(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]bool{"the one before is signed": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, quickAWS())
			alice := sourcetest.NewSSHKey(t)
			allowed := filepath.Join(w.dir, "allowed_signers")
			if err := os.WriteFile(allowed, []byte("alice@example.com "+string(ssh.MarshalAuthorizedKey(alice.PublicKey()))), 0o600); err != nil {
				t.Fatal(err)
			}
			w.repo.Switch("work")
			commit := func(what string, sign bool) string {
				made := w.repo.Commit(what)
				if sign {
					made = w.repo.Signed(made, w.repo.SSHSign(alice))
				}
				w.repo.Branch("work", made)
				w.repo.Branch("main", made)
				return made
			}
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := commit("first", sign)
			next := w.config()
			a, stop := w.startWith(func() (*config.Config, error) { return next, nil })
			defer stop()
			converged(t, a, first, 1)
			next = w.config()
			next.Sources[0].Verify = signature.Policy{Mode: signature.Commit, SSH: signature.SSH{AllowedSignersFile: allowed}}
			a.reloadDue.send()
			w.repo.Write(map[string]string{"overlays/prod/web.yaml": "a: [\n"})
			broken := commit("broken", true)
			if !sign {
				first = ""
			}
			heldTo(t, a, broken, first)
		})
	}
}

// What was found bad of a change starts nowhere once its target is held, and it is not what
// the target is held to: neither by the daemon that found it nor by the next one.
func TestABrokenCommitAfterABadOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	seen := &starts{}
	w.before = seen.see
	const waves = "  waves: [{name: canary, pools: 1}]\n"
	w.repo.Write(demandedFiles("m5.large", 3, waves))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer func() { stop() }()
	targetConverged(t, a, "prod", first)
	healthy := w.aws.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m6i.large"})
	w.repo.Write(demandedFiles("m6i.large", 3, waves))
	second := w.repo.Commit("second")
	heldBy(t, a, "prod", second, step.HeldStopped, "was stopped by default/nodes")
	healthy()
	before := len(seen.list())
	w.repo.Write(map[string]string{"overlays/prod/pool.yaml": "a: [\n"})
	broken := w.repo.Commit("broken")
	for range 2 {
		eventually(t, "the hold", func() string {
			s, _ := a.current.Targets.Find("prod")
			if s.Last == nil || s.Last.Revision != broken || s.Last.Fallback == nil || s.Last.Fallback.To() == "" && s.Last.Fallback.Revision != "" {
				return fmt.Sprintf("%+v", s.Last)
			}
			if to := s.Last.Fallback.To(); to == second {
				t.Fatalf("it is held to what is bad: %s", s.Last.Fallback.Text())
			}
			return ""
		})
		anotherPass(t, a)
		stop()
		a, stop = w.start()
	}
	if got := seen.list(); len(got) != before {
		t.Errorf("machines were replaced of %q, of which %d before", got, before)
	}
}
