package intent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/intent"
)

// AWS may leave the type of a traffic source out, and weir writes it always: what is
// one source must not look like two.
func TestTrafficSourcesHaveTheTypeOfTheirIdentifier(t *testing.T) {
	arn := "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/a/0123456789abcdef"
	lattice := "arn:aws-cn:vpc-lattice:cn-north-1:123456789012:targetgroup/tg-0123456789abcdef0"
	got := intent.GroupOptions{TargetGroupARNs: []string{arn}, LoadBalancerNames: []string{"classic"},
		TrafficSources: []intent.TrafficSource{{Identifier: arn}, {Identifier: "classic"}, {Identifier: lattice}, {Identifier: "other", Type: "elb"}}}.Sources()
	want := []intent.TrafficSource{{Identifier: lattice, Type: "vpc-lattice"}, {Identifier: arn, Type: "elbv2"}, {Identifier: "classic", Type: "elb"}, {Identifier: "other", Type: "elb"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
