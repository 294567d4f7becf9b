package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/instances"
)

func TestInstance(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	drain := plan.Draining{PodsLeft: 1, Until: now.Add(time.Minute), Why: "the budget web allows no disruption"}
	for name, c := range map[string]struct {
		answer instances.Answer
		want   string
	}{
		"whole": {instances.Answer{
			Instance: plan.Instance{ID: "i-1", TemplateVersion: "3", Zone: "eu-west-1a", Type: "m5.large", ImageID: "ami-1", State: "Terminating:Wait", Health: "Unhealthy", Node: "ip-10-0-0-7", Why: "waits for its termination lifecycle hook"},
			Pool:     "web", Namespace: "default", Cluster: "blue", Target: "prod", Account: "111122223333", Region: "eu-west-1", Group: "web", Nodegroup: "n", LaunchTemplateID: "lt-1", CurrentTemplateVersion: "5",
			Commit: &instances.Commit{Revision: "9c1f0d2", Subject: "bigger\x1b disks"}, Draining: &drain, PoolsAt: now.Add(-time.Minute),
			AWS:   &instances.Facts{LaunchedAt: now.Add(-3 * time.Hour), Market: "spot", PrivateIP: "10.0.0.7", PrivateDNS: "ip-10-0-0-7.ec2.internal", State: "running", Image: &instances.Image{ID: "ami-1", Name: "al2023", CreatedAt: now.Add(-72 * time.Hour)}},
			Notes: []string{"something is missing"},
		}, `
instance:  i-1
pool:      default/web, target prod, cluster blue
commit:    9c1f0d2 bigger<U+001B> disks
image:     ami-1 al2023, made 2026-02-27T12:00:00Z (3d ago)
age:       3h, launched 2026-03-02T09:00:00Z
type:      m5.large, spot
zone:      eu-west-1a
state:     Terminating:Wait, Unhealthy
why:       waits for its termination lifecycle hook
draining:  1 pod left, terminated at the latest 2026-03-02T12:01:00Z; the budget web allows no disruption
template:  lt-1 version 3, new instances get 5
node:      ip-10-0-0-7
address:   10.0.0.7, ip-10-0-0-7.ec2.internal
EC2 state: running
group:     web
nodegroup: n
account:   111122223333, region eu-west-1
last read: 2026-03-02T11:59:00Z (1m ago)
note: something is missing
`},
		"AWS does not answer": {instances.Answer{
			Instance: plan.Instance{ID: "i-1", LaunchConfiguration: "web-1", Zone: "eu-west-1a", State: "InService"}, Pool: "web", Namespace: "default", Account: "111122223333",
		}, `
instance: i-1
pool:     default/web
zone:     eu-west-1a
state:    InService
template: web-1
account:  111122223333
`},
	} {
		var b strings.Builder
		Printer{W: &b}.Instance(c.answer, now)
		if d := cmp.Diff(strings.TrimPrefix(c.want, "\n"), b.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
