package doctor

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/weir-gitops/weir/reconciler/awscloud/probe"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/reconciler/preflight"
)

// quotaNames reads the names in Service Quotas of the vCPU quotas whose codes weir uses.
func (v *visit) quotaNames(ctx context.Context) {
	const name = "quota-families"
	for _, q := range preflight.QuotaCodes() {
		out, err := v.calls.quota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(q.Code)})
		e := sdk.Classify("servicequotas", "GetServiceQuota", err)
		switch {
		case e != nil && e.Kind == observed.NotFound: // a region without such types has no quota
			continue
		case v.notes.refused(name, "servicequotas", "GetServiceQuota", err):
			return
		case out.Quota == nil:
			continue
		}
		if said := aws.ToString(out.Quota.QuotaName); q.Fits(said) {
			v.notes.note(name, AsAssumed, "%s is %s", q.Code, said)
		} else {
			v.notes.note(name, Differs, "%s is %s; weir takes it for the quota of %s", q.Code, said, q)
		}
	}
}

// fullFilters makes each read of package probe once, with as many names as one call accepts. None of them
// exists.
func (v *visit) fullFilters(ctx context.Context) {
	p := v.calls.prober
	named := func(format string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(format, i))
		}
		return out
	}
	const ids = "%017x"
	arns := named("arn:"+partition.Of(v.notes.client.Region()).ID+":elasticloadbalancing:"+v.notes.client.Region()+":"+v.notes.client.Account()+":targetgroup/weir-doctor/%016x", probe.TargetGroupsAtOnce)
	for _, read := range []struct {
		what string
		run  func() error
	}{
		{"DescribeKeyPairs by key-name", func() error { _, err := p.KeyPairs(ctx, named(Prefix+"%d", probe.NamesAtOnce)); return err }},
		{"DescribeSecurityGroups by group-id", func() error { _, err := p.GroupsThatExist(ctx, named("sg-"+ids, probe.NamesAtOnce)); return err }},
		{"DescribeSubnets by subnet-id", func() error { _, err := p.SubnetRoom(ctx, named("subnet-"+ids, probe.NamesAtOnce)); return err }},
		{"DescribePlacementGroups by name", func() error { _, err := p.PlacementGroups(ctx, named(Prefix+"%d", probe.NamesAtOnce)); return err }},
		{"DescribeInstanceTypes by instance-type", func() error { _, err := p.InstanceTypes(ctx, named("m5.%dlarge", probe.TypesAtOnce)); return err }},
		{"DescribeInstanceTypeOfferings by instance-type", func() error { _, err := p.Offerings(ctx, named("m5.%dlarge", probe.NamesAtOnce)); return err }},
		{"DescribeCapacityReservations by state", func() error { _, err := p.Reservations(ctx); return err }},
		{"DescribeInstances by instance-state-name", func() error { _, err := p.Running(ctx); return err }},
		{"GetInstanceProfile", func() error { _, _, err := p.Profile(ctx, Prefix+v.Number); return err }},
		{"DescribeKey", func() error { _, _, err := p.Key(ctx, "00000000-0000-0000-0000-000000000000"); return err }},
		{"DescribeSnapshots by snapshot-id", func() error { _, err := p.Snapshots(ctx, named("snap-"+ids, probe.NamesAtOnce)); return err }},
		{"DescribePlacementGroups by GroupIds", func() error {
			_, err := v.calls.placementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupIds: named("pg-"+ids, probe.NamesAtOnce)})
			return unlessMissing("ec2", "DescribePlacementGroups", err)
		}},
		{"DescribeTargetGroups", func() error {
			_, err := v.calls.targetGroups(ctx, &elb.DescribeTargetGroupsInput{TargetGroupArns: arns})
			return unlessMissing("elasticloadbalancing", "DescribeTargetGroups", err)
		}},
	} {
		const name = "full-filters"
		if ctx.Err() != nil {
			return
		}
		e := sdk.Classify("", "", read.run())
		switch {
		case e == nil:
			v.notes.note(name, AsAssumed, "%s", read.what)
		case e.Kind == observed.Invalid || e.Kind == observed.Quota: // such as FilterLimitExceeded
			v.notes.note(name, Differs, "%s: %s", read.what, e.Error())
		default:
			v.notes.note(name, NotSeen, "%s: %s", read.what, e.Error())
		}
	}
}

// unlessMissing returns the error of a read, or nil if it only says that one of the names does not exist.
func unlessMissing(service, operation string, err error) error {
	if e := sdk.Classify(service, operation, err); e != nil && e.Kind != observed.NotFound && e.Code != "InvalidPlacementGroup.Unknown" {
		return e
	}
	return nil
}
