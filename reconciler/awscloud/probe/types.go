package probe

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/preflight"
)

// InstanceTypes reads instance types. It leaves out unknown ones.
func (p *Prober) InstanceTypes(ctx context.Context, names []string) (map[string]preflight.InstanceType, error) {
	found := map[string]preflight.InstanceType{}
	for batch := range slices.Chunk(names, typesBatch) {
		in := &ec2.DescribeInstanceTypesInput{Filters: []types.Filter{filter("instance-type", batch...)}, MaxResults: aws.Int32(typesBatch)}
		err := sdk.EachPage(ctx, "ec2", "DescribeInstanceTypes", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := p.ec2.DescribeInstanceTypes(ctx, in)
			if err != nil {
				return nil, err
			}
			for i := range out.InstanceTypes {
				found[string(out.InstanceTypes[i].InstanceType)] = instanceType(&out.InstanceTypes[i])
			}
			return out.NextToken, nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// instanceType converts EC2's description of an instance type for preflight. Values that EC2 does not return
// stay zero.
func instanceType(t *types.InstanceTypeInfo) preflight.InstanceType {
	out := preflight.InstanceType{
		Markets: texts(t.SupportedUsageClasses), Enclaves: string(t.NitroEnclavesSupport), Hibernation: t.HibernationSupported, Hosts: t.DedicatedHostsSupported,
	}
	if c := t.VCpuInfo; c != nil {
		out.VCPUs, out.Cores, out.Threads = aws.ToInt32(c.DefaultVCpus), c.ValidCores, c.ValidThreadsPerCore
	}
	if c := t.ProcessorInfo; c != nil {
		out.Architectures, out.Features = texts(c.SupportedArchitectures), texts(c.SupportedFeatures)
	}
	if g := t.PlacementGroupInfo; g != nil {
		out.Strategies = texts(g.SupportedStrategies)
	}
	if e := t.EbsInfo; e != nil {
		out.EBSOptimized, out.Encrypted = string(e.EbsOptimizedSupport), string(e.EncryptionSupport)
	}
	if n := t.NetworkInfo; n != nil {
		out.EFA, out.EnaSrd, out.Weightings = n.EfaSupported, n.EnaSrdSupported, texts(n.BandwidthWeightings)
		out.MaxInterfaces, out.NetworkCards = aws.ToInt32(n.MaximumNetworkInterfaces), aws.ToInt32(n.MaximumNetworkCards)
		if n.EfaInfo != nil {
			out.MaxEFAs = aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces)
		}
	}
	return out
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// Offerings reads the zones that offer each instance type, sorted.
func (p *Prober) Offerings(ctx context.Context, names []string) (map[string][]string, error) {
	found := map[string][]string{}
	for batch := range slices.Chunk(names, filterValues) {
		in := &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{filter("instance-type", batch...)}, MaxResults: aws.Int32(page)}
		err := sdk.EachPage(ctx, "ec2", "DescribeInstanceTypeOfferings", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := p.ec2.DescribeInstanceTypeOfferings(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, o := range out.InstanceTypeOfferings {
				found[string(o.InstanceType)] = append(found[string(o.InstanceType)], aws.ToString(o.Location))
			}
			return out.NextToken, nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, zones := range found {
		slices.Sort(zones)
	}
	return found, nil
}

// Running reads the instances that count against vCPU quotas: they are starting or running, and neither on
// dedicated hosts nor in capacity blocks.
func (p *Prober) Running(ctx context.Context) ([]preflight.Instance, error) {
	var all []preflight.Instance
	in := &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("instance-state-name", "pending", "running")}, MaxResults: aws.Int32(page)}
	err := sdk.EachPage(ctx, "ec2", "DescribeInstances", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := p.ec2.DescribeInstances(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, r := range out.Reservations {
			for i := range r.Instances {
				m := &r.Instances[i]
				if m.InstanceLifecycle != "" && m.InstanceLifecycle != types.InstanceLifecycleTypeSpot || m.Placement != nil && m.Placement.Tenancy == types.TenancyHost {
					continue
				}
				one := preflight.Instance{Type: string(m.InstanceType), Spot: m.InstanceLifecycle == types.InstanceLifecycleTypeSpot}
				if c := m.CpuOptions; c != nil {
					one.VCPUs = aws.ToInt32(c.CoreCount) * aws.ToInt32(c.ThreadsPerCore)
				}
				all = append(all, one)
			}
		}
		return out.NextToken, nil
	})
	return all, err
}

// Reservations reads the capacity reservations in which machines can be launched, including those that other
// accounts share.
func (p *Prober) Reservations(ctx context.Context) ([]preflight.Reservation, error) {
	var all []preflight.Reservation
	in := &ec2.DescribeCapacityReservationsInput{Filters: []types.Filter{filter("state", string(types.CapacityReservationStateActive))}, MaxResults: aws.Int32(page)}
	err := sdk.EachPage(ctx, "ec2", "DescribeCapacityReservations", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := p.ec2.DescribeCapacityReservations(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range out.CapacityReservations {
			c := &out.CapacityReservations[i]
			all = append(all, preflight.Reservation{
				ID: aws.ToString(c.CapacityReservationId), Type: aws.ToString(c.InstanceType), Zone: aws.ToString(c.AvailabilityZone),
				Open: c.InstanceMatchCriteria == types.InstanceMatchCriteriaOpen, Free: int64(aws.ToInt32(c.AvailableInstanceCount)),
			})
		}
		return out.NextToken, nil
	})
	return all, err
}
