package convert

import (
	"slices"
	"strings"
	"unique"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/render/intent"
)

// TemplateRequest converts template data for a request. Absent members stay absent, because EC2 stores
// exactly what is sent. Two members, which are Special in the table of fields, are structures in the request
// and not in the intent.
func TemplateRequest(d intent.TemplateData) *types.RequestLaunchTemplateData {
	out := &types.RequestLaunchTemplateData{}
	Carry(d, out)
	if m := d.InstanceMarketOptions; m != nil && m.MaxPrice != "" {
		out.InstanceMarketOptions.SpotOptions = &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: aws.String(m.MaxPrice)}
	}
	if c := d.CapacityReservationSpecification; c != nil && (c.TargetID != "" || c.TargetGroupARN != "") {
		out.CapacityReservationSpecification.CapacityReservationTarget = &types.CapacityReservationTarget{
			CapacityReservationId: StringOrNil(c.TargetID), CapacityReservationResourceGroupArn: StringOrNil(c.TargetGroupARN),
		}
	}
	return out
}

// TemplateData converts EC2's template data, in canonical order. unknown reports a member of the version
// that intent.TemplateData cannot express. This includes members that a later SDK adds, without a change
// here.
func TemplateData(in *types.ResponseLaunchTemplateData) (d intent.TemplateData, unknown bool) {
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
		options.State = "" // set by AWS: how far the options were applied
		rest.MetadataOptions = &options
	}
	unknown = Carry(rest, &d)
	if price != nil {
		d.InstanceMarketOptions.MaxPrice = *price
	}
	if c := d.CapacityReservationSpecification; c != nil {
		unknown = Carry(target, c) || unknown
	}
	if d.UserData != "" {
		// Pools of one cluster share their user data, often the largest part of a version. So equal texts
		// share their memory.
		d.UserData = unique.Make(d.UserData).Value()
	}
	inOrder(&d)
	return d, unknown
}

// inOrder sorts lists whose order has no meaning.
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

// StringOrNil returns nil for an empty string, to leave it out of a request.
func StringOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// numberOrNil returns nil for a zero, to leave it out of a request.
func numberOrNil(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}
