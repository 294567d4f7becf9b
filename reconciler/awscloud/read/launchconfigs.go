package read

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// configsPage is the number of launch configurations in one call. DescribeLaunchConfigurations returns 50
// per page by default.
const configsPage = 50

// LaunchConfigurations reads launch configurations by name. Auto Scaling leaves out missing ones. The
// version number is 0.
func (r *Reader) LaunchConfigurations(ctx context.Context, names ...string) (map[string]observed.TemplateVersion, error) {
	found := map[string]observed.TemplateVersion{}
	for batch := range slices.Chunk(names, configsPage) {
		in := &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: batch}
		err := sdk.EachPage(ctx, "autoscaling", "DescribeLaunchConfigurations", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := r.AutoScaling.DescribeLaunchConfigurations(ctx, in)
			if err != nil {
				return nil, err
			}
			for i := range out.LaunchConfigurations {
				found[aws.ToString(out.LaunchConfigurations[i].LaunchConfigurationName)] = launchConfiguration(&out.LaunchConfigurations[i])
			}
			return out.NextToken, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// launchConfiguration returns the content of a launch template that starts the same machines as a launch
// configuration ("Migrate your Auto Scaling groups to launch templates" in the user guide).
func launchConfiguration(c *types.LaunchConfiguration) observed.TemplateVersion {
	d := intent.TemplateData{
		ImageID: aws.ToString(c.ImageId), InstanceType: aws.ToString(c.InstanceType), KeyName: aws.ToString(c.KeyName), UserData: aws.ToString(c.UserData),
		KernelID: aws.ToString(c.KernelId), RAMDiskID: aws.ToString(c.RamdiskId), EbsOptimized: c.EbsOptimized,
	}
	unknown := aws.ToString(c.ClassicLinkVPCId) != "" || len(c.ClassicLinkVPCSecurityGroups) > 0
	for _, g := range c.SecurityGroups {
		unknown = unknown || !strings.HasPrefix(g, "sg-") // names of EC2-Classic
		d.SecurityGroupIDs = append(d.SecurityGroupIDs, g)
	}
	slices.Sort(d.SecurityGroupIDs)
	if p := aws.ToString(c.IamInstanceProfile); strings.HasPrefix(p, "arn:") {
		d.IamInstanceProfile = &intent.InstanceProfile{ARN: p}
	} else if p != "" {
		d.IamInstanceProfile = &intent.InstanceProfile{Name: p}
	}
	if price := aws.ToString(c.SpotPrice); price != "" {
		d.InstanceMarketOptions = &intent.MarketOptions{MarketType: "spot", MaxPrice: price}
	}
	if tenancy := aws.ToString(c.PlacementTenancy); tenancy != "" {
		d.Placement = &intent.Placement{Tenancy: tenancy}
	}
	// Without this member, Auto Scaling enables detailed monitoring for instances of a launch configuration.
	if m := c.InstanceMonitoring; m == nil || m.Enabled == nil || *m.Enabled {
		d.Monitoring = &intent.Monitoring{Enabled: aws.Bool(true)}
	}
	// Unset members have the defaults in InstanceMetadataOptions of the API reference. Launch configurations
	// have no tags in instance metadata.
	if m := c.MetadataOptions; m != nil {
		d.MetadataOptions = &intent.MetadataOptions{
			HTTPEndpoint: cmp.Or(string(m.HttpEndpoint), "enabled"), HTTPPutResponseHopLimit: cmp.Or(aws.ToInt32(m.HttpPutResponseHopLimit), 1),
			HTTPTokens: cmp.Or(string(m.HttpTokens), "optional"), InstanceMetadataTags: "disabled",
		}
	}
	if c.AssociatePublicIpAddress != nil {
		d.NetworkInterfaces = []intent.NetworkInterface{{AssociatePublicIPAddress: c.AssociatePublicIpAddress, DeviceIndex: aws.Int32(0), Groups: d.SecurityGroupIDs}}
		d.SecurityGroupIDs = nil
	}
	for _, m := range c.BlockDeviceMappings {
		b := intent.BlockDeviceMapping{DeviceName: aws.ToString(m.DeviceName)}
		if e := m.Ebs; e != nil {
			unknown = unknown || aws.ToString(e.SnapshotId) != ""
			b.Ebs = intent.Ebs{Encrypted: e.Encrypted, Iops: aws.ToInt32(e.Iops), Throughput: aws.ToInt32(e.Throughput), VolumeSize: aws.ToInt32(e.VolumeSize), VolumeType: aws.ToString(e.VolumeType), DeleteOnTermination: e.DeleteOnTermination}
			if b.Ebs.DeleteOnTermination == nil {
				b.Ebs.DeleteOnTermination = aws.Bool(true) // the default in Ebs of Auto Scaling's API reference
			}
		}
		unknown = unknown || m.Ebs == nil || aws.ToString(m.VirtualName) != "" || aws.ToBool(m.NoDevice)
		d.BlockDeviceMappings = append(d.BlockDeviceMappings, b)
	}
	return observed.TemplateVersion{Data: d, Unknown: unknown}
}
