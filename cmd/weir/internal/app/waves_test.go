package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

// fleetOf are overlays with one pool each, by target.
func fleetOf(instanceType string, targets ...string) map[string]string {
	files := map[string]string{}
	for _, t := range targets {
		files["overlays/"+t+"/kustomization.yaml"] = "resources: [pool.yaml]\n"
		files["overlays/"+t+"/pool.yaml"] = pool(t+"-web", instanceType, 3)
	}
	return files
}

// command asks the daemon for something and returns its answer.
func command(t *testing.T, a *App, path string, r gates.Request) gates.Answer {
	t.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.Addr()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(commands.Header, "1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v", path, res.Status, text, err)
	}
	var out gates.Answer
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// heldBy waits until all steps of a target, and at least one, are held so, with a
// reason that contains the text.
func heldBy(t *testing.T, a *App, target, revision string, hold step.Hold, reason string) *plan.Plan {
	t.Helper()
	var found *plan.Plan
	eventually(t, target+" is held", func() string {
		s, ok := a.current.Targets.Find(target)
		if !ok || s.Last == nil || s.Last.Plan == nil || s.Last.Revision != revision {
			return "no plan yet"
		}
		found = s.Last.Plan
		n := 0
		for _, st := range found.Steps {
			if st.Held == hold && strings.Contains(st.HeldReason, reason) {
				n++
			}
		}
		if n == 0 || n < len(found.Steps) && hold != step.HeldWindow && hold != step.HeldRolloutLimit {
			return fmt.Sprintf("%d of %d steps: %+v", n, len(found.Steps), found.Steps)
		}
		return ""
	})
	return found
}

func targetConverged(t *testing.T, a *App, target, revision string) {
	t.Helper()
	eventually(t, target+" converges", func() string {
		s, ok := a.current.Targets.Find(target)
		if !ok || s.Last == nil {
			return "no pass yet"
		}
		if s.Last.Revision != revision || !s.Last.Converged() {
			return fmt.Sprintf("revision %q, phase %s, error %v, %v", s.Last.Revision, s.Phase, s.Last.Err, s.Last.Diagnostics)
		}
		return ""
	})
}

const secondWave = `- name: second
  path: overlays/second
  region: eu-west-1
  dependsOn: [prod]
`

func TestAChangeReachesTheSecondWaveAfterTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = secondWave
	w.repo.Write(fleetOf("m5.large", "prod", "second"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "second", first)
	w.repo.Write(fleetOf("m6i.large", "prod", "second"))
	second := w.repo.Commit("second")
	targetConverged(t, a, "second", second)
	made := []string{"CreateLaunchTemplate", "CreateAutoScalingGroup"}
	rolled := []string{"CreateLaunchTemplateVersion", "StartInstanceRefresh", "ModifyLaunchTemplate"}
	// The default version moves once a rollout is done: only then the next begins.
	if diff := cmp.Diff(slices.Concat(made, made, rolled, rolled), w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	eventually(t, "status", func() string {
		if got := w.forge.states(second, "fleet/apply"); !succeeded(got) {
			return "states: " + got
		}
		return ""
	})
}

func TestAFailedRolloutStopsTheNextWave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = secondWave
	w.repo.Write(fleetOf("m5.large", "prod", "second"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "second", first)

	// The new machines run and do not get healthy.
	healthy := w.aws.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m6i.large"})
	w.repo.Write(fleetOf("m6i.large", "prod", "second"))
	second := w.repo.Commit("second")
	heldBy(t, a, "second", second, step.HeldWave, "waits for the target prod, which failed: rollout-failed")
	eventually(t, "status", func() string {
		if state, text := w.forge.last(second, "fleet/apply/second"); state != "pending" || !strings.Contains(text, "prod") {
			return state + " " + text
		}
		return ""
	})

	// Tried again once the machines are good, it goes on by itself.
	healthy()
	got := command(t, a, commands.ReconcilePath, gates.Request{Targets: []string{"prod"}, Retry: true})
	if !slices.Equal(got.Reconciled, []string{"prod"}) {
		t.Errorf("reconciled: %v", got)
	}
	targetConverged(t, a, "second", second)
}

// TestAPullRequestSaysWhichTargetMovesFirst has one change both waves.
func TestAPullRequestSaysWhichTargetMovesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = secondWave
	w.repo.Write(fleetOf("m5.large", "prod", "second"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "second", first)
	w.propose(1, fleetOf("m6i.large", "prod", "second"))
	const says = "held: wave, waits for the target prod, which moves first"
	eventually(t, "the comment", func() string {
		if told := w.forge.told(1); len(told) != 1 || !strings.Contains(told[0], says) || strings.Contains(told[0], "target second, which") {
			return fmt.Sprintf("%q", told)
		}
		return ""
	})
}

// golden are overlays with one pool each that follows the account's newest image.
func golden(targets ...string) map[string]string {
	files := fleetOf("m5.large", targets...)
	for name, text := range files {
		text = strings.Replace(text, "ami: {eksLookupType: AmazonLinux2023}", `imageLookupFormat: "golden-*", imageLookupOrg: "000000000000"`, 1)
		files[name] = strings.Replace(text, "kind: AWSMachinePool\nmetadata: {name: ", "kind: AWSMachinePool\nmetadata: {annotations: {weir.dev/ami-policy: follow}, name: ", 1)
	}
	return files
}

// publish has images of a day in both regions, with other ids and names in each.
func (w *world) publish(day string) {
	w.t.Helper()
	image := func(region string) string {
		return fmt.Sprintf(`{"images": [{"id": "ami-0000000000000%s%s", "name": "golden-%s-%s", "architecture": "x86_64", "created": "2026-01-%sT00:00:00Z"}]}`,
			day, map[string]string{"eu-west-1": "aa", "us-east-1": "bb"}[region], region, day, day)
	}
	seed := fmt.Sprintf(`{"regions": {"eu-west-1": %s, "us-east-1": %s}}`, image("eu-west-1"), image("us-east-1"))
	if err := w.aws.Seed(strings.NewReader(seed)); err != nil {
		w.t.Fatal(err)
	}
}

// TestAFollowedImageReachesTheSecondWaveAfterTheFirst has the second wave be the first
// to be told of a newer image: in the region before it, what AWS said minutes ago
// still counts.
func TestAFollowedImageReachesTheSecondWaveAfterTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = strings.Replace(secondWave, "eu-west-1", "us-east-1", 1)
	w.publish("01")
	w.repo.Write(golden("prod", "second"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "prod", first)
	targetConverged(t, a, "second", first)
	w.aws.ResetCalls()
	w.publish("02")
	a.passes.mu.Lock()
	for key, l := range a.passes.loops.of {
		if key.Region == "us-east-1" {
			l.scope.Resolver.Renew(time.Now())
			l.Nudge()
		}
	}
	a.passes.mu.Unlock()
	var rolled []string
	eventually(t, "both roll", func() string {
		rolled = nil
		for _, c := range w.aws.Calls() {
			if c.ErrorCode == "" && (c.Operation == "StartInstanceRefresh" || c.Operation == "ModifyLaunchTemplate") {
				rolled = append(rolled, c.Region+" "+c.Operation)
			}
		}
		if len(rolled) < 4 {
			return fmt.Sprint(rolled)
		}
		return ""
	})
	want := []string{"eu-west-1 StartInstanceRefresh", "eu-west-1 ModifyLaunchTemplate", "us-east-1 StartInstanceRefresh", "us-east-1 ModifyLaunchTemplate"}
	if d := cmp.Diff(want, rolled); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDriftIsPutBackBehindAWave has the first wave stand still while somebody changes
// something of the second.
func TestDriftIsPutBackBehindAWave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = secondWave
	w.repo.Write(fleetOf("m5.large", "prod", "second"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "second", first)
	command(t, a, commands.SuspendPath, gates.Request{Target: "prod", Reason: "incident 17", For: "1h", By: "ann"})
	w.repo.Write(fleetOf("m6i.large", "prod"))
	second := w.repo.Commit("the first alone")
	heldBy(t, a, "prod", second, step.HeldSuspended, "incident 17")
	w.aws.ResetCalls()
	w.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=second-web&MaxSize=7")
	a.requests.passAll()
	eventually(t, "the size is put back", func() string {
		if got := w.query("autoscaling", "DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=second-web"); !strings.Contains(got, "<MaxSize>3</MaxSize>") {
			return got
		}
		return ""
	})

	// Steps of a new commit wait, and say for whom and who ends it.
	w.repo.Write(fleetOf("m6i.large", "second"))
	third := w.repo.Commit("the second too")
	heldBy(t, a, "second", third, step.HeldWave, "waits for the target prod, which is suspended by ann until")
	heldBy(t, a, "second", third, step.HeldWave, "; weir resume prod")
	eventually(t, "status", func() string {
		if state, text := w.forge.last(third, "fleet/apply/second"); state != "pending" || !strings.Contains(text, "waits for the target prod") {
			return state + " " + text
		}
		return ""
	})
	command(t, a, commands.ResumePath, gates.Request{Target: "prod"})
	targetConverged(t, a, "second", third)
}

// TestAWaveHoldsOverOthersThatHaveNothingToDo has a commit leave the second of three
// as it is.
func TestAWaveHoldsOverOthersThatHaveNothingToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = secondWave + "- {name: third, path: overlays/third, region: eu-west-1, dependsOn: [second]}\n"
	w.repo.Write(fleetOf("m5.large", "prod", "second", "third"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "third", first)
	healthy := w.aws.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m6i.large"})
	w.repo.Write(fleetOf("m6i.large", "prod"))
	w.repo.Write(fleetOf("m7i.large", "third"))
	second := w.repo.Commit("the first and the third")
	heldBy(t, a, "third", second, step.HeldWave, "waits for the target prod, which failed: rollout-failed for AWSMachinePool default/prod-web; released by: a commit that changes the pool, or weir reconcile prod --retry")
	targetConverged(t, a, "second", second)

	// Asked to try again, the third still waits, and goes on once the first has.
	command(t, a, commands.ReconcilePath, gates.Request{Targets: []string{"third"}, Retry: true})
	heldBy(t, a, "third", second, step.HeldWave, "waits for the target prod")
	healthy()
	command(t, a, commands.ReconcilePath, gates.Request{Targets: []string{"prod"}, Retry: true})
	targetConverged(t, a, "third", second)
}
