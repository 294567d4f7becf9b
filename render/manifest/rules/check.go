package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// dnsName is the pattern of object names.
var dnsName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkName reports a name that Kubernetes does not accept.
func checkName(r kinds.Reporter) {
	if r.Ref.Name != "" && (len(r.Ref.Name) > 253 || !dnsName.MatchString(r.Ref.Name)) {
		r.Error(path("metadata", "name"), "bad-name", fmt.Sprintf("%q is not a valid name for a Kubernetes object", r.Ref.Name),
			"use lower-case letters, digits, - and ., beginning and ending with a letter or digit")
	}
}

// labelName matches a valid label value of Kubernetes, and a valid label key after the optional
// prefix.
var labelName = lazyregexp.New(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// checkLabels reports keys of labels or annotations, and values of labels, that Kubernetes does not accept.
func checkLabels(r kinds.Reporter, p intent.Path, m map[string]string, values bool) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		prefix, name, prefixed := strings.Cut(k, "/")
		if !prefixed {
			name = k
		}
		if len(name) > 63 || !labelName.MatchString(name) || (prefixed && (len(prefix) > 253 || !dnsName.MatchString(prefix))) {
			r.To.Add(kinds.Fault{Code: "bad-name", Summary: fmt.Sprintf("%q is not a valid key for a label or annotation", k), Ref: r.Ref, Path: p.Join(k), Key: true})
		}
		if v := m[k]; values && v != "" && (len(v) > 63 || !labelName.MatchString(v)) {
			r.Error(p.Join(k), "bad-value", fmt.Sprintf("%s cannot have the value %q", p.Join(k), v), "")
		}
	}
}

// tagText matches the tag keys and values that CAPA allows; AWS accepts letters of other scripts as
// well.
var tagText = lazyregexp.New(`^[a-zA-Z0-9\s_.:=+\-@/]*$`)

// CheckTags applies CAPA's rules for additionalTags, and refuses weir's own keys, which record the owner of a
// resource.
func CheckTags(r kinds.Reporter, p intent.Path, tags map[string]string) {
	if len(tags) > 50 {
		r.Error(p, "too-many-tags", fmt.Sprintf("%s has %d tags; AWS allows 50", p, len(tags)), "")
	}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		at, v := p.Join(k), tags[k]
		switch {
		case k == "" || len([]rune(k)) > 128:
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q must have 1 to 128 characters", k), "")
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q begins with aws:, which AWS reserves", k), "")
		case strings.HasPrefix(k, kinds.GroupWeir+"/"):
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q is weir's own", k), "keys that begin with weir.dev/ say who owns a resource")
		case !tagText.MatchString(k):
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q has a character that AWS does not accept", k), "use letters, digits, spaces and _ . : = + - @ /")
		case len([]rune(v)) > 256:
			r.Error(at, "bad-tag", fmt.Sprintf("the value of tag %q is longer than 256 characters", k), "")
		case !tagText.MatchString(v):
			r.Error(at, "bad-tag", fmt.Sprintf("the value of tag %q has a character that AWS does not accept", k), "use letters, digits, spaces and _ . : = + - @ /")
		}
	}
}

// checkReferences applies the rules for lists of ids and filters. checkIDs checks the form of the ids.
func checkReferences(r kinds.Reporter, p intent.Path, refs []kinds.AWSResourceReference) {
	for i, ref := range refs {
		at := p.Join(intent.Index(i))
		switch {
		case ref.ID != nil && ref.Filters != nil:
			r.Error(at, "exclusive", at.String()+" has both id and filters", "write one of them")
		case ref.ID == nil && len(ref.Filters) == 0 && ref.ARN != nil:
			r.Error(at.Join("arn"), "not-carried", at.String()+" names an ARN, which nothing reads", "write its id instead")
		case ref.ID == nil && len(ref.Filters) == 0:
			r.Error(at, "missing-required", at.String()+" names nothing", "write id or filters")
		}
	}
}

// checkHooks applies CAPA's rules for lifecycle hooks.
func checkHooks(r kinds.Reporter, hooks []kinds.LifecycleHook) {
	p := path("spec", "lifecycleHooks")
	seen := map[string]bool{}
	for i, h := range hooks {
		at := p.Join(intent.Index(i))
		if seen[h.Name] {
			r.Error(at.Join("name"), "duplicate", fmt.Sprintf("lifecycle hook %q is written twice", h.Name), "")
		}
		seen[h.Name] = true
		if (h.NotificationTargetARN == nil) != (h.RoleARN == nil) {
			r.Error(at, "incomplete", at.String()+" needs both notificationTargetARN and roleARN, or neither", "")
		}
		if t := h.HeartbeatTimeout; t != nil && (*t < 30*time.Second || *t > 172800*time.Second) {
			r.Error(at.Join("heartbeatTimeout"), "out-of-range", fmt.Sprintf("%s is %s, must be 30s to 48h", at.Join("heartbeatTimeout"), *t), "")
		}
	}
}

// spotPrice is CAPA's pattern for maxPrice. A mistake in CAPA's schema disables it, but EC2 refuses values
// that do not match.
var spotPrice = lazyregexp.New(`^[0-9]+(\.[0-9]+)?$`)

// minSpotPrice is the minimum spot price, in US dollars per hour: MaxPrice of
// LaunchTemplateSpotMarketOptionsRequest in EC2's API reference, and SpotMaxPrice of InstancesDistribution in
// the API reference of Auto Scaling.
const minSpotPrice = 0.001

// checkSpotPrice checks the optional maximum price of spot instances.
func checkSpotPrice(r kinds.Reporter, at intent.Path, price string) {
	if price == "" {
		return
	}
	if n, err := strconv.ParseFloat(price, 64); err != nil || !spotPrice.MatchString(price) || n < minSpotPrice {
		r.Error(at, "bad-value", fmt.Sprintf("%s is %q; it must be a price of at least %v", at, price, minSpotPrice), `write US dollars an hour, such as "0.05", or leave it out: the on-demand price is then the limit`)
	}
}

// checkMarket applies CAPA's rules for spot instances and capacity reservations.
func checkMarket(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) {
	spot, reservation := lt.SpotMarketOptions, lt.CapacityReservationID
	if spot != nil {
		checkSpotPrice(r, p.Join("spotMarketOptions", "maxPrice"), intent.Value(spot.MaxPrice))
	}
	switch at := p.Join("marketType"); {
	case (lt.MarketType == "OnDemand" || lt.MarketType == "CapacityBlock") && spot != nil:
		r.Error(at, "exclusive", fmt.Sprintf("%s %s excludes spotMarketOptions", at, lt.MarketType), "")
	case lt.MarketType == "CapacityBlock" && reservation == nil:
		r.Error(at, "incomplete", at.String()+" CapacityBlock needs capacityReservationId", "")
	case lt.MarketType == "Spot" && reservation != nil:
		r.Error(at, "exclusive", at.String()+" Spot excludes capacityReservationId", "")
	case reservation != nil && spot != nil:
		r.Error(p.Join("capacityReservationId"), "exclusive", p.Join("capacityReservationId").String()+" excludes spotMarketOptions", "")
	}
	pref := lt.CapacityReservationPreference
	if reservation != nil && pref != "" && pref != "CapacityReservationsOnly" {
		at := p.Join("capacityReservationPreference")
		r.Error(at, "exclusive", fmt.Sprintf("%s %s excludes capacityReservationId", at, pref), "leave it out or write CapacityReservationsOnly")
	}
}
