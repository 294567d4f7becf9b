package asg

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// LaunchConfig is a launch configuration: a launch source of groups without a launch template. It never
// changes.
type LaunchConfig struct {
	Name, ARN string
	Created   time.Time
	Data      wire.Data // as it was sent, by the members of CreateLaunchConfiguration
}

type launchConfigInput struct {
	LaunchConfigurationName, InstanceID                string
	ImageID, InstanceType, KeyName, UserData           *string
	KernelID, RamdiskID, SpotPrice, IamInstanceProfile *string
	PlacementTenancy, ClassicLinkVPCID                 *string
	SecurityGroups, ClassicLinkVPCSecurityGroups       []string
	BlockDeviceMappings                                []wire.Data
	InstanceMonitoring, MetadataOptions                wire.Data
	EbsOptimized, AssociatePublicIPAddress             *bool
}

// data returns the members that were sent.
func (in *launchConfigInput) data() wire.Data {
	d := wire.Data{}
	for name, text := range map[string]*string{
		"ImageId": in.ImageID, "InstanceType": in.InstanceType, "KeyName": in.KeyName, "UserData": in.UserData, "KernelId": in.KernelID, "RamdiskId": in.RamdiskID,
		"SpotPrice": in.SpotPrice, "IamInstanceProfile": in.IamInstanceProfile, "PlacementTenancy": in.PlacementTenancy, "ClassicLinkVPCId": in.ClassicLinkVPCID,
	} {
		if text != nil && *text != "" {
			d[name] = *text
		}
	}
	for name, texts := range map[string][]string{"SecurityGroups": in.SecurityGroups, "ClassicLinkVPCSecurityGroups": in.ClassicLinkVPCSecurityGroups} {
		if len(texts) > 0 {
			d[name] = anyOf(texts)
		}
	}
	if len(in.BlockDeviceMappings) > 0 {
		var mappings []any
		for _, m := range in.BlockDeviceMappings {
			mappings = append(mappings, map[string]any(m))
		}
		d["BlockDeviceMappings"] = mappings
	}
	for name, sub := range map[string]wire.Data{"InstanceMonitoring": in.InstanceMonitoring, "MetadataOptions": in.MetadataOptions} {
		if sub != nil {
			d[name] = map[string]any(sub)
		}
	}
	for name, b := range map[string]*bool{"EbsOptimized": in.EbsOptimized, "AssociatePublicIpAddress": in.AssociatePublicIPAddress} {
		if b != nil {
			d[name] = map[bool]string{true: "true", false: "false"}[*b]
		}
	}
	return d
}

func anyOf(texts []string) []any {
	out := make([]any, 0, len(texts))
	for _, t := range texts {
		out = append(out, t)
	}
	return out
}

func createLaunchConfiguration(rq *request, in launchConfigInput) error {
	if err := rq.Region.addLaunchConfig(in.LaunchConfigurationName, in.InstanceID, in.data()); err != nil {
		return err
	}
	return nil
}

// addLaunchConfig makes a launch configuration, from an instance if one is named.
func (r *Region) addLaunchConfig(name, instance string, d wire.Data) *wire.Error {
	if instance != "" {
		i := r.ec2.Instances.Get(instance)
		if i == nil || !i.Alive() {
			return invalid("The instance ID '%s' does not exist", instance)
		}
		like := wire.Data{"ImageId": i.ImageID, "InstanceType": i.Type, "SecurityGroups": anyOf(i.Groups)}
		for name, text := range map[string]string{"KeyName": i.KeyName, "IamInstanceProfile": i.Profile} {
			if text != "" {
				like[name] = text
			}
		}
		d = like.MergedWith(d)
	}
	n := r.Quota("launch-configurations")
	switch {
	case r.LaunchConfigs.Has(name):
		return wire.Fail("AlreadyExists", "Launch Configuration by this name already exists - A launch configuration already exists with the name %s", name)
	case r.LaunchConfigs.Len() >= n:
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of launch configurations you can create: %d", n)
	case !d.Has("ImageId") || !d.Has("InstanceType"):
		return invalid("Valid requests must contain the InstanceID parameter or both the ImageId and InstanceType parameters.")
	case d.Has("PlacementTenancy") && !slices.Contains([]string{"default", "dedicated"}, d.Text("PlacementTenancy")):
		return invalid("Invalid value for parameter PlacementTenancy: %s. Valid values are: default, dedicated", d.Text("PlacementTenancy"))
	}
	d = wire.Data{"EbsOptimized": "false", "InstanceMonitoring": map[string]any{"Enabled": "true"}}.MergedWith(d)
	c := &LaunchConfig{Name: name, Created: r.Now(), Data: d,
		ARN: r.ARN("autoscaling", "launchConfiguration:"+r.NewUUID("launch-configuration")+":launchConfigurationName/"+name)}
	if err := r.checkLaunchConfig(c); err != nil {
		return err
	}
	r.LaunchConfigs.Put(name, c)
	return nil
}

// checkLaunchConfig returns an error for missing resources. The network depends on the group, so security
// groups are not restricted to a VPC.
func (r *Region) checkLaunchConfig(c *LaunchConfig) *wire.Error {
	body := c.body()
	image, err := r.ec2.ResolveImage(body.Text("ImageId"))
	if err == nil && !r.ec2.Images.Has(image) {
		err = wire.Fail("", "The image id '[%s]' does not exist", image)
	}
	if err != nil {
		return invalid("AMI cannot be described: %s", err.Message)
	}
	if _, known := ec2.InstanceTypes()[body.Text("InstanceType")]; !known {
		return invalid("Invalid instance type: %s", body.Text("InstanceType"))
	}
	if key := body.Text("KeyName"); key != "" && r.ec2.KeyByName(key) == nil {
		return invalid("The key pair '%s' does not exist", key)
	}
	for _, id := range body.Texts("SecurityGroupIds") {
		if !r.ec2.SecurityGroups.Has(id) {
			return invalid("The security group '%s' does not exist", id)
		}
	}
	return nil
}

// body returns the content of the configuration in the form of a launch template version.
func (c *LaunchConfig) body() wire.Data {
	out := wire.Data{}
	for _, name := range []string{"ImageId", "InstanceType", "KeyName", "UserData", "BlockDeviceMappings", "MetadataOptions", "EbsOptimized", "KernelId"} {
		if v, ok := c.Data[name]; ok {
			out[name] = v
		}
	}
	var ids, names []any
	for _, g := range c.Data.Texts("SecurityGroups") {
		if strings.HasPrefix(g, "sg-") {
			ids = append(ids, g)
		} else {
			names = append(names, g)
		}
	}
	for name, groups := range map[string][]any{"SecurityGroupIds": ids, "SecurityGroups": names} {
		if len(groups) > 0 {
			out[name] = groups
		}
	}
	if p := c.Data.Text("IamInstanceProfile"); p != "" {
		named := "Name"
		if strings.HasPrefix(p, "arn:") {
			named = "Arn"
		}
		out["IamInstanceProfile"] = map[string]any{named: p}
	}
	if c.Data.Has("SpotPrice") {
		out["InstanceMarketOptions"] = map[string]any{"MarketType": "spot"}
	}
	return out
}

// launchConfigNamed finds a launch configuration for a group.
func (r *Region) launchConfigNamed(name string) (*LaunchConfig, *wire.Error) {
	if c := r.LaunchConfigs.Get(name); c != nil {
		return c, nil
	}
	return nil, invalid("Launch configuration name not found - A launch configuration with the name: %s does not exist", name)
}

type launchConfigName struct{ LaunchConfigurationName string }

func deleteLaunchConfiguration(rq *request, in launchConfigName) error {
	r := rq.Region
	if !r.LaunchConfigs.Has(in.LaunchConfigurationName) {
		return invalid("Launch configuration name not found - Launch configuration %s not found", in.LaunchConfigurationName)
	}
	for _, name := range r.Groups.Sorted() {
		if r.Groups.Get(name).Config.LaunchConfig == in.LaunchConfigurationName {
			return wire.Fail("ResourceInUse", "Cannot delete launch configuration %s because it is attached to AutoScalingGroup %s", in.LaunchConfigurationName, name)
		}
	}
	r.LaunchConfigs.Remove(in.LaunchConfigurationName)
	return nil
}

type describeLaunchConfigsInput struct {
	paging
	LaunchConfigurationNames []string
}

func (in *describeLaunchConfigsInput) Check() error { return in.bound(50, 100) }

func describeLaunchConfigurations(rq *request, in describeLaunchConfigsInput) error {
	configs := &rq.Region.LaunchConfigs
	var keys []string
	for _, name := range configs.Sorted() {
		if len(in.LaunchConfigurationNames) == 0 || slices.Contains(in.LaunchConfigurationNames, name) {
			keys = append(keys, name)
		}
	}
	return writePage(rq, "LaunchConfigurations", keys, in.paging, func(name string) {
		c, w := configs.Get(name), &rq.XML
		w.Text("LaunchConfigurationName", name)
		w.Text("LaunchConfigurationARN", c.ARN)
		w.Time("CreatedTime", c.Created)
		for _, empty := range []string{"KeyName", "UserData", "KernelId", "RamdiskId"} {
			if !c.Data.Has(empty) {
				w.Text(empty, "") // AWS always returns it
			}
		}
		w.WriteShape(c.Data, model.Services()["autoscaling"].Shapes["LaunchConfiguration"])
	})
}
