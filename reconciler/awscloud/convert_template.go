package awscloud

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// stringOrNil leaves an empty string out of a request.
func stringOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// numberOrNil leaves a zero out of a request.
func numberOrNil(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// requestData writes template data as EC2's request. Absent members stay absent:
// EC2 stores what is sent and nothing else.
func requestData(d intent.TemplateData) *types.RequestLaunchTemplateData {
	out := &types.RequestLaunchTemplateData{
		ImageId:          stringOrNil(d.ImageID),
		InstanceType:     types.InstanceType(d.InstanceType),
		KeyName:          stringOrNil(d.KeyName),
		SecurityGroupIds: d.SecurityGroupIDs,
		UserData:         stringOrNil(d.UserData),
	}
	if p := d.IamInstanceProfile; p != nil {
		out.IamInstanceProfile = &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: stringOrNil(p.Name), Arn: stringOrNil(p.ARN)}
	}
	for _, b := range d.BlockDeviceMappings {
		out.BlockDeviceMappings = append(out.BlockDeviceMappings, types.LaunchTemplateBlockDeviceMappingRequest{
			DeviceName: stringOrNil(b.DeviceName),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{
				VolumeSize: numberOrNil(b.Ebs.VolumeSize), VolumeType: types.VolumeType(b.Ebs.VolumeType),
				Iops: numberOrNil(b.Ebs.Iops), Throughput: numberOrNil(b.Ebs.Throughput),
				Encrypted: b.Ebs.Encrypted, KmsKeyId: stringOrNil(b.Ebs.KmsKeyID), DeleteOnTermination: b.Ebs.DeleteOnTermination,
			},
		})
	}
	if m := d.InstanceMarketOptions; m != nil {
		out.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketType(m.MarketType)}
		if m.MaxPrice != "" {
			out.InstanceMarketOptions.SpotOptions = &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: aws.String(m.MaxPrice)}
		}
	}
	if c := d.CapacityReservationSpecification; c != nil {
		out.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreference(c.Preference),
		}
		if c.TargetID != "" || c.TargetGroupARN != "" {
			out.CapacityReservationSpecification.CapacityReservationTarget = &types.CapacityReservationTarget{
				CapacityReservationId: stringOrNil(c.TargetID), CapacityReservationResourceGroupArn: stringOrNil(c.TargetGroupARN),
			}
		}
	}
	requestOptions(d, out)
	requestPoolOptions(d, out)
	return out
}

func requestOptions(d intent.TemplateData, out *types.RequestLaunchTemplateData) {
	if m := d.MetadataOptions; m != nil {
		out.MetadataOptions = &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint:            types.LaunchTemplateInstanceMetadataEndpointState(m.HTTPEndpoint),
			HttpProtocolIpv6:        types.LaunchTemplateInstanceMetadataProtocolIpv6(m.HTTPProtocolIPv6),
			HttpPutResponseHopLimit: numberOrNil(m.HTTPPutResponseHopLimit),
			HttpTokens:              types.LaunchTemplateHttpTokensState(m.HTTPTokens),
			InstanceMetadataTags:    types.LaunchTemplateInstanceMetadataTagsState(m.InstanceMetadataTags),
		}
	}
	if e := d.EnclaveOptions; e != nil {
		out.EnclaveOptions = &types.LaunchTemplateEnclaveOptionsRequest{Enabled: e.Enabled}
	}
	if p := d.PrivateDNSNameOptions; p != nil {
		out.PrivateDnsNameOptions = &types.LaunchTemplatePrivateDnsNameOptionsRequest{
			HostnameType:                    types.HostnameType(p.HostnameType),
			EnableResourceNameDnsARecord:    p.EnableResourceNameDNSARecord,
			EnableResourceNameDnsAAAARecord: p.EnableResourceNameDNSAAAARecord,
		}
	}
	for _, s := range d.TagSpecifications {
		spec := types.LaunchTemplateTagSpecificationRequest{ResourceType: types.ResourceType(s.ResourceType)}
		for _, t := range s.Tags {
			spec.Tags = append(spec.Tags, types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)})
		}
		out.TagSpecifications = append(out.TagSpecifications, spec)
	}
}

// templateData reads what EC2 stores, in canonical order. unknown says that the
// version holds a member that intent.TemplateData cannot say. What was read is
// taken out of a copy of the answer; if anything is left in it, it is unknown.
// So a member that a later SDK brings is unknown without a word here.
func templateData(in *types.ResponseLaunchTemplateData) (d intent.TemplateData, unknown bool) {
	if in == nil {
		return d, false
	}
	rest := *in
	d = intent.TemplateData{
		ImageID: aws.ToString(in.ImageId), InstanceType: string(in.InstanceType), KeyName: aws.ToString(in.KeyName),
		SecurityGroupIDs: sortedStrings(in.SecurityGroupIds),
	}
	if u := aws.ToString(in.UserData); u != "" {
		// Pools of one cluster have the same user data, often the largest part
		// of a version: equal texts share their memory.
		d.UserData = unique.Make(u).Value()
	}
	rest.ImageId, rest.InstanceType, rest.KeyName, rest.SecurityGroupIds, rest.UserData = nil, "", nil, nil, nil
	if p := in.IamInstanceProfile; p != nil {
		d.IamInstanceProfile = &intent.InstanceProfile{Name: aws.ToString(p.Name), ARN: aws.ToString(p.Arn)}
		left := *p
		left.Name, left.Arn = nil, nil
		unknown = unknown || remains(left)
		rest.IamInstanceProfile = nil
	}
	for _, b := range in.BlockDeviceMappings {
		m, more := blockDevice(b)
		d.BlockDeviceMappings = append(d.BlockDeviceMappings, m)
		unknown = unknown || more
	}
	rest.BlockDeviceMappings = nil
	unknown = readMarket(in, &rest, &d) || unknown
	unknown = readReservation(in, &rest, &d) || unknown
	unknown = readOptions(in, &rest, &d) || unknown
	unknown = readPoolOptions(in, &rest, &d) || unknown
	d.TagSpecifications = tagSpecifications(in.TagSpecifications)
	rest.TagSpecifications = nil
	return d, unknown || remains(rest)
}

func blockDevice(b types.LaunchTemplateBlockDeviceMapping) (m intent.BlockDeviceMapping, unknown bool) {
	m.DeviceName = aws.ToString(b.DeviceName)
	b.DeviceName = nil
	if e := b.Ebs; e != nil {
		m.Ebs = intent.Ebs{
			VolumeSize: aws.ToInt32(e.VolumeSize), VolumeType: string(e.VolumeType), Iops: aws.ToInt32(e.Iops),
			Throughput: aws.ToInt32(e.Throughput), Encrypted: e.Encrypted, KmsKeyID: aws.ToString(e.KmsKeyId),
			DeleteOnTermination: e.DeleteOnTermination,
		}
		left := *e
		left.VolumeSize, left.VolumeType, left.Iops, left.Throughput = nil, "", nil, nil
		left.Encrypted, left.KmsKeyId, left.DeleteOnTermination = nil, nil, nil
		unknown = remains(left)
		b.Ebs = nil
	}
	return m, unknown || remains(b)
}

func readMarket(in, rest *types.ResponseLaunchTemplateData, d *intent.TemplateData) (unknown bool) {
	m := in.InstanceMarketOptions
	if m == nil {
		return false
	}
	d.InstanceMarketOptions = &intent.MarketOptions{MarketType: string(m.MarketType)}
	left := *m
	left.MarketType = ""
	if s := m.SpotOptions; s != nil {
		d.InstanceMarketOptions.MaxPrice = aws.ToString(s.MaxPrice)
		spot := *s
		spot.MaxPrice = nil
		unknown = remains(spot)
		left.SpotOptions = nil
	}
	rest.InstanceMarketOptions = nil
	return unknown || remains(left)
}

func readReservation(in, rest *types.ResponseLaunchTemplateData, d *intent.TemplateData) (unknown bool) {
	c := in.CapacityReservationSpecification
	if c == nil {
		return false
	}
	d.CapacityReservationSpecification = &intent.CapacityReservation{Preference: string(c.CapacityReservationPreference)}
	left := *c
	left.CapacityReservationPreference = ""
	if t := c.CapacityReservationTarget; t != nil {
		d.CapacityReservationSpecification.TargetID = aws.ToString(t.CapacityReservationId)
		d.CapacityReservationSpecification.TargetGroupARN = aws.ToString(t.CapacityReservationResourceGroupArn)
		target := *t
		target.CapacityReservationId, target.CapacityReservationResourceGroupArn = nil, nil
		unknown = remains(target)
		left.CapacityReservationTarget = nil
	}
	rest.CapacityReservationSpecification = nil
	return unknown || remains(left)
}

func readOptions(in, rest *types.ResponseLaunchTemplateData, d *intent.TemplateData) (unknown bool) {
	if m := in.MetadataOptions; m != nil {
		d.MetadataOptions = &intent.MetadataOptions{
			HTTPEndpoint: string(m.HttpEndpoint), HTTPProtocolIPv6: string(m.HttpProtocolIpv6),
			HTTPPutResponseHopLimit: aws.ToInt32(m.HttpPutResponseHopLimit), HTTPTokens: string(m.HttpTokens),
			InstanceMetadataTags: string(m.InstanceMetadataTags),
		}
		left := *m
		left.HttpEndpoint, left.HttpProtocolIpv6, left.HttpPutResponseHopLimit, left.HttpTokens, left.InstanceMetadataTags = "", "", nil, "", ""
		left.State = "" // AWS's own: how far the options were applied
		unknown = remains(left)
		rest.MetadataOptions = nil
	}
	if e := in.EnclaveOptions; e != nil {
		d.EnclaveOptions = &intent.EnclaveOptions{Enabled: e.Enabled}
		left := *e
		left.Enabled = nil
		unknown = unknown || remains(left)
		rest.EnclaveOptions = nil
	}
	if p := in.PrivateDnsNameOptions; p != nil {
		d.PrivateDNSNameOptions = &intent.PrivateDNSNameOptions{
			HostnameType: string(p.HostnameType), EnableResourceNameDNSARecord: p.EnableResourceNameDnsARecord,
			EnableResourceNameDNSAAAARecord: p.EnableResourceNameDnsAAAARecord,
		}
		left := *p
		left.HostnameType, left.EnableResourceNameDnsARecord, left.EnableResourceNameDnsAAAARecord = "", nil, nil
		unknown = unknown || remains(left)
		rest.PrivateDnsNameOptions = nil
	}
	return unknown
}

func tagSpecifications(in []types.LaunchTemplateTagSpecification) []intent.TemplateTagSpecification {
	var out []intent.TemplateTagSpecification
	for _, s := range in {
		spec := intent.TemplateTagSpecification{ResourceType: string(s.ResourceType)}
		for _, t := range s.Tags {
			spec.Tags = append(spec.Tags, intent.Tag{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value)})
		}
		slices.SortFunc(spec.Tags, func(a, b intent.Tag) int { return strings.Compare(a.Key, b.Key) })
		out = append(out, spec)
	}
	slices.SortFunc(out, func(a, b intent.TemplateTagSpecification) int {
		return strings.Compare(a.ResourceType, b.ResourceType)
	})
	return out
}

// remains reports whether a struct of the SDK still holds anything. Empty texts
// and lists count as absent: EC2 answers some members that were never sent with
// an empty element.
func remains(v any) bool { return holds(reflect.ValueOf(v)) }

func holds(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return false
		}
		// A pointer to false or 0 was sent by somebody, so it counts.
		if e := v.Elem(); e.Kind() == reflect.Struct || e.Kind() == reflect.String {
			return holds(e)
		}
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return !v.IsZero()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && holds(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return !v.IsZero()
	}
}

func sortedStrings(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	out := slices.Clone(in)
	slices.Sort(out)
	return out
}

// template converts a launch template without its versions.
func template(t types.LaunchTemplate) plan.Template {
	return plan.Template{
		ID: aws.ToString(t.LaunchTemplateId), Name: aws.ToString(t.LaunchTemplateName),
		DefaultVersion: aws.ToInt64(t.DefaultVersionNumber), LatestVersion: aws.ToInt64(t.LatestVersionNumber),
		Tags: ec2Tags(t.Tags),
	}
}

// templateVersion converts one version.
func templateVersion(v types.LaunchTemplateVersion) plan.TemplateVersion {
	data, unknown := templateData(v.LaunchTemplateData)
	return plan.TemplateVersion{
		Number: aws.ToInt64(v.VersionNumber), Description: aws.ToString(v.VersionDescription), Data: data, Unknown: unknown,
		Body: plan.BodyHash(data),
	}
}

func ec2Tags(in []types.Tag) map[string]string {
	out := make(map[string]string, len(in))
	for _, t := range in {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}
