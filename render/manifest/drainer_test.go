package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
)

// TestDrainerRules: a drainer that could not do what it says is refused.
func TestDrainerRules(t *testing.T) {
	retain := "\nautoScalingGroup: {instanceLifecyclePolicy: {retentionTriggers: {terminateHookAbandon: retain}}%s}"
	for name, tt := range map[string]struct {
		kind, pool, options string
		want                []string
	}{
		"all by default":        {options: "drainer: {}"},
		"whole":                 {options: "drainer: {timeout: 30m, onDeadline: proceed}"},
		"too short":             {options: "drainer: {timeout: 30s}", want: []string{"out-of-range spec.drainer.timeout"}},
		"too long":              {options: "drainer: {timeout: 25h}", want: []string{"out-of-range spec.drainer.timeout"}},
		"parts of a second":     {options: "drainer: {timeout: 90.5s}", want: []string{"out-of-range spec.drainer.timeout"}},
		"no such end":           {options: "drainer: {onDeadline: kill}", want: []string{"bad-enum spec.drainer.onDeadline"}},
		"unknown":               {options: "drainer: {grace: 1m}", want: []string{"unknown-field spec.drainer.grace"}},
		"abandoned to AWS":      {options: "drainer: {onDeadline: abandon}", want: []string{"incomplete spec.drainer.onDeadline"}},
		"retained":              {options: "drainer: {onDeadline: abandon}" + fmt.Sprintf(retain, "")},
		"retained, with a pool": {options: "drainer: {onDeadline: abandon}" + fmt.Sprintf(retain, ", warmPool: {}"), want: []string{"exclusive spec.drainer.onDeadline"}},
		"machines that return":  {options: "drainer: {}\nautoScalingGroup: {warmPool: {instanceReusePolicy: {reuseOnScaleIn: true}}}", want: []string{"exclusive spec.drainer"}},
		"its hook's name":       {pool: `lifecycleHooks: [{name: weir-drain, lifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING"}]`, options: "drainer: {}", want: []string{"exclusive spec.drainer - AWSMachinePool spec.lifecycleHooks"}},
		"of volumes":            {pool: mixedPool, options: "drainer: {}\nautoScalingGroup: {refreshPreferences: {strategy: ReplaceRootVolume}}", want: []string{"exclusive spec.autoScalingGroup.refreshPreferences.strategy"}},
		"of a nodegroup":        {kind: "AWSManagedMachinePool", options: "drainer: {}", want: []string{"not-allowed spec.drainer"}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := groupPool("minSize: 1\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}\n" + tt.pool)
			if tt.kind == "" {
				tt.kind = "AWSMachinePool"
			} else {
				pool = managedPool("instanceType: m5.large")
			}
			set, faults := manifest.Intents(objects(t, stream(machinePool(tt.kind, "", noBootstrap), pool, options("extra", tt.kind, tt.options), eksCluster)), manifest.Options{})
			if d := cmp.Diff(tt.want, pairs(faults)); d != "" {
				t.Errorf("errors (-want +got):\n%s\n%v", d, faults)
			}
			if len(tt.want) > 0 || t.Failed() {
				return
			}
			g := set.Pools[0].Group
			if slices.Contains(briefly(faults, diag.Warning), "retains-nothing spec.autoScalingGroup.instanceLifecyclePolicy.retentionTriggers.terminateHookAbandon") {
				t.Error("the drainer's own hook is not seen")
			}
			if again, ok := intent.DrainerOf(g.Drainer.Text()); !ok || again != *g.Drainer {
				t.Errorf("%+v is told as %q, which is %+v", g.Drainer, g.Drainer.Text(), again)
			}
			abandons := strings.Contains(tt.options, "abandon")
			if len(g.LifecycleHooks) != 1 || g.LifecycleHooks[0] != g.Drainer.Hook() || (g.LifecycleHooks[0].DefaultResult == "ABANDON") != abandons {
				t.Errorf("hooks: %+v", g.LifecycleHooks)
			}
		})
	}
}

// TestDrainersLast: whatever the time, AWS waits for heartbeats until it is over, and not
// for long where nobody sends any.
func TestDrainersLast(t *testing.T) {
	for timeout := int32(60); timeout <= 24*3600; timeout += 7 {
		h := intent.Drainer{Timeout: timeout}.Heartbeat()
		if h < 30 || h > 1000 || min(100*h, 48*3600) < timeout+timeout/10 {
			t.Fatalf("a drain of %d s with a heartbeat of %d s", timeout, h)
		}
	}
	for _, text := range []string{"", "15m", "15m0s", "15m0s x", "1s CONTINUE", "48h0m0s CONTINUE", "15m0s CONTINUE x"} {
		if _, ok := intent.DrainerOf(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}
