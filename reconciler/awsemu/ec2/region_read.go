package ec2

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

type describeRegionsInput struct {
	Filters     []filter
	RegionNames []string
	AllRegions  bool // all regions of the emulator are opted in
}

func (in *describeRegionsInput) Check() error { return checkFilters(in.Filters) }

func describeRegions(rq *request, in describeRegionsInput) error {
	endpoint := func(name string) string { return "ec2." + name + "." + world.DNSSuffix(name) }
	match, err := matcher(in.Filters, attributes[string]{
		"region-name":   one(func(name string) string { return name }),
		"endpoint":      one(endpoint),
		"opt-in-status": one(world.OptIn),
	}, func(string) world.Tags { return nil })
	if err != nil {
		return err
	}
	names := world.RegionsOf(world.Partition(rq.Region.Name))
	for _, name := range in.RegionNames {
		if !slices.Contains(names, name) {
			return wire.Fail("InvalidParameterValue", "Invalid region name: [%s]", name)
		}
	}
	w := &rq.XML
	w.Open("regionInfo")
	for _, name := range names {
		if len(in.RegionNames) > 0 && !slices.Contains(in.RegionNames, name) || !match(name) {
			continue
		}
		w.Open("item")
		w.Text("regionName", name)
		w.Text("regionEndpoint", endpoint(name))
		w.Text("optInStatus", world.OptIn(name))
		w.Close("item")
	}
	w.Close("regionInfo")
	return nil
}

// describeAccountAttributes describes a current account, without EC2-Classic.
func describeAccountAttributes(rq *request, in struct{ AttributeNames []string }) error {
	vpc := "none"
	if v := rq.Region.DefaultVPC(); v != nil {
		vpc = v.ID
	}
	w := &rq.XML
	w.Open("accountAttributeSet")
	for _, a := range [][2]string{
		{"supported-platforms", "VPC"}, {"vpc-max-security-groups-per-interface", "5"}, {"max-elastic-ips", "5"},
		{"max-instances", "20"}, {"vpc-max-elastic-ips", "5"}, {"default-vpc", vpc},
	} {
		if len(in.AttributeNames) > 0 && !slices.Contains(in.AttributeNames, a[0]) {
			continue
		}
		w.Open("item")
		w.Text("attributeName", a[0])
		w.Open("attributeValueSet")
		w.Open("item")
		w.Text("attributeValue", a[1])
		w.Close("item")
		w.Close("attributeValueSet")
		w.Close("item")
	}
	w.Close("accountAttributeSet")
	return nil
}

// describeVpcAttribute returns an attribute of a VPC. Only the default VPC gives instances DNS names by
// default.
func describeVpcAttribute(rq *request, in struct{ VpcID, Attribute string }) error {
	v := rq.Region.Vpcs.Get(in.VpcID)
	if v == nil {
		return vpcNotFound(in.VpcID)
	}
	value := map[string]bool{"enableDnsSupport": true, "enableDnsHostnames": v.Default}[in.Attribute]
	w := &rq.XML
	w.Text("vpcId", v.ID)
	w.Open(in.Attribute)
	w.Boolean("value", value)
	w.Close(in.Attribute)
	return nil
}

type spotPricesInput struct {
	describe
	AvailabilityZone, AvailabilityZoneID string
	StartTime, EndTime                   string
	InstanceTypes, ProductDescriptions   []string
}

func (in *spotPricesInput) Check() error { return in.bound(1, 1000, 1000) }

// spotPrice is the price of one instance type in one zone.
type spotPrice struct {
	kind, zone, product, price string
	since                      time.Time
}

// spotPriceOf returns the Spot price of an instance. It is about a third of the on-demand price of its vCPUs
// and memory, differs slightly between zones, and is the same every day.
func (r *Region) spotPriceOf(name string, zone int) string {
	t := InstanceTypes()[name]
	dollars := (float64(t.Vcpus)*0.03 + float64(t.Memory)/1024*0.004) * (0.32 + 0.02*float64(zone))
	return strconv.FormatFloat(dollars, 'f', 6, 64)
}

// describeSpotPriceHistory returns one price for each type, zone and product, last changed at midnight.
func describeSpotPriceHistory(rq *request, in spotPricesInput) error {
	r := rq.Region
	match, err := matcher(in.Filters, attributes[spotPrice]{
		"availability-zone":    one(func(p spotPrice) string { return p.zone }),
		"availability-zone-id": one(func(p spotPrice) string { return r.ZoneIDOf(p.zone) }),
		"instance-type":        one(func(p spotPrice) string { return p.kind }),
		"product-description":  one(func(p spotPrice) string { return p.product }),
		"spot-price":           one(func(p spotPrice) string { return p.price }),
		"timestamp":            one(func(p spotPrice) string { return p.since.Format(wire.Time) }),
	}, func(spotPrice) world.Tags { return nil })
	if err != nil {
		return err
	}
	since := r.Now().Truncate(24 * time.Hour)
	end, err := time.Parse(time.RFC3339Nano, in.EndTime)
	if in.EndTime != "" && err != nil {
		return badValue("endTime", in.EndTime, "Expected a time.")
	}
	if in.EndTime != "" && end.Before(since) {
		since = end.Truncate(24 * time.Hour)
	}
	rows, keys := map[string]spotPrice{}, []string(nil)
	for _, kind := range instanceTypeNames() {
		for i, zone := range r.Zones() {
			for _, product := range []string{"Linux/UNIX", "Windows"} {
				p := spotPrice{kind: kind, zone: zone, product: product, price: r.spotPriceOf(kind, i), since: since}
				if (in.AvailabilityZone != "" && in.AvailabilityZone != zone) || (in.AvailabilityZoneID != "" && in.AvailabilityZoneID != r.ZoneIDOf(zone)) ||
					(len(in.InstanceTypes) > 0 && !slices.Contains(in.InstanceTypes, kind)) || !r.offered(kind, zone) ||
					(len(in.ProductDescriptions) > 0 && !slices.Contains(withVPC(in.ProductDescriptions), product)) || !match(p) {
					continue
				}
				key := kind + "|" + zone + "|" + product
				rows[key], keys = p, append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	w := &rq.XML
	w.Open("spotPriceHistorySet")
	next, err := rq.Page(keys, in.NextToken, in.limit, func(key string) bool {
		p := rows[key]
		w.Open("item")
		w.Text("instanceType", p.kind)
		w.Text("productDescription", p.product)
		w.Text("spotPrice", p.price)
		w.Time("timestamp", p.since)
		w.Text("availabilityZone", p.zone)
		w.Text("availabilityZoneId", r.ZoneIDOf(p.zone))
		w.Close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("spotPriceHistorySet")
	w.Text("nextToken", next)
	return nil
}

// withVPC replaces product names from EC2-Classic with their current names.
func withVPC(products []string) []string {
	out := make([]string, 0, len(products))
	for _, p := range products {
		out = append(out, strings.TrimSuffix(p, " (Amazon VPC)"))
	}
	return out
}
