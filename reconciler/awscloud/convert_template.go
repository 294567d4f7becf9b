package awscloud

import (
	"slices"
	"strings"
	"unique"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
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
// EC2 stores what is sent and nothing else. Two members, which are Special in the table
// of fields, have a structure in the request that the intent does without.
func requestData(d intent.TemplateData) *types.RequestLaunchTemplateData {
	out := &types.RequestLaunchTemplateData{}
	carry(d, out)
	if m := d.InstanceMarketOptions; m != nil && m.MaxPrice != "" {
		out.InstanceMarketOptions.SpotOptions = &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: aws.String(m.MaxPrice)}
	}
	if c := d.CapacityReservationSpecification; c != nil && (c.TargetID != "" || c.TargetGroupARN != "") {
		out.CapacityReservationSpecification.CapacityReservationTarget = &types.CapacityReservationTarget{
			CapacityReservationId: stringOrNil(c.TargetID), CapacityReservationResourceGroupArn: stringOrNil(c.TargetGroupARN),
		}
	}
	return out
}

// templateData reads what EC2 stores, in canonical order. unknown says that the version
// holds a member that intent.TemplateData cannot say: also one that a later SDK brings,
// without a word here.
func templateData(in *types.ResponseLaunchTemplateData) (d intent.TemplateData, unknown bool) {
	if in == nil {
		return d, false
	}
	rest := *in
	var price *string
	if m := in.InstanceMarketOptions; m != nil && m.SpotOptions != nil {
		market, spot := *m, *m.SpotOptions
		price, spot.MaxPrice = spot.MaxPrice, nil
		market.SpotOptions, rest.InstanceMarketOptions = &spot, &market
	}
	var target types.CapacityReservationTargetResponse
	if c := in.CapacityReservationSpecification; c != nil && c.CapacityReservationTarget != nil {
		reservation := *c
		target, reservation.CapacityReservationTarget = *c.CapacityReservationTarget, nil
		rest.CapacityReservationSpecification = &reservation
	}
	if m := in.MetadataOptions; m != nil {
		options := *m
		options.State = "" // AWS's own: how far the options were applied
		rest.MetadataOptions = &options
	}
	unknown = carry(rest, &d)
	if price != nil {
		d.InstanceMarketOptions.MaxPrice = *price
	}
	if c := d.CapacityReservationSpecification; c != nil {
		unknown = carry(target, c) || unknown
	}
	if d.UserData != "" {
		// Pools of one cluster have the same user data, often the largest part
		// of a version: equal texts share their memory.
		d.UserData = unique.Make(d.UserData).Value()
	}
	inOrder(&d)
	return d, unknown
}

// inOrder sorts what has no order.
func inOrder(d *intent.TemplateData) {
	slices.Sort(d.SecurityGroupIDs)
	for i := range d.NetworkInterfaces {
		slices.Sort(d.NetworkInterfaces[i].Groups)
	}
	for _, s := range d.TagSpecifications {
		slices.SortFunc(s.Tags, func(a, b intent.Tag) int { return strings.Compare(a.Key, b.Key) })
	}
	slices.SortFunc(d.TagSpecifications, func(a, b intent.TemplateTagSpecification) int { return strings.Compare(a.ResourceType, b.ResourceType) })
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
func template(t types.LaunchTemplate) observed.Template {
	return observed.Template{
		ID: aws.ToString(t.LaunchTemplateId), Name: aws.ToString(t.LaunchTemplateName),
		DefaultVersion: aws.ToInt64(t.DefaultVersionNumber), LatestVersion: aws.ToInt64(t.LatestVersionNumber),
		Tags: ec2Tags(t.Tags),
	}
}

// templateVersion converts one version.
func templateVersion(v types.LaunchTemplateVersion) observed.TemplateVersion {
	data, unknown := templateData(v.LaunchTemplateData)
	return observed.TemplateVersion{
		Number: aws.ToInt64(v.VersionNumber), Description: aws.ToString(v.VersionDescription), Data: data, Unknown: unknown,
		Body: content.BodyHash(data),
	}
}

func ec2Tags(in []types.Tag) map[string]string {
	out := make(map[string]string, len(in))
	for _, t := range in {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}
