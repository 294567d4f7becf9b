package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// dnsName is the pattern of object names.
var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// checkName reports a name that Kubernetes would not take.
func checkName(r kinds.Reporter) {
	if r.Ref.Name != "" && (len(r.Ref.Name) > 253 || !dnsName.MatchString(r.Ref.Name)) {
		r.Error(path("metadata", "name"), "bad-name", fmt.Sprintf("%q is no name for a Kubernetes object", r.Ref.Name),
			"use lower-case letters, digits, - and ., beginning and ending with a letter or digit")
	}
}

// labelName is what Kubernetes takes as a label's value, and as its key after
// the optional prefix.
var labelName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// checkLabels reports keys of labels or annotations, and values of labels, that
// Kubernetes would not take.
func checkLabels(r kinds.Reporter, p intent.Path, m map[string]string, values bool) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		prefix, name, prefixed := strings.Cut(k, "/")
		if !prefixed {
			name = k
		}
		if len(name) > 63 || !labelName.MatchString(name) || (prefixed && (len(prefix) > 253 || !dnsName.MatchString(prefix))) {
			r.To.Add(kinds.Fault{Code: "bad-name", Summary: fmt.Sprintf("%q is no key for a label or annotation", k), Ref: r.Ref, Path: p.Join(k), Key: true})
		}
		if v := m[k]; values && v != "" && (len(v) > 63 || !labelName.MatchString(v)) {
			r.Error(p.Join(k), "bad-value", fmt.Sprintf("%s cannot have the value %q", p.Join(k), v), "")
		}
	}
}

// tagText is what CAPA allows in tag keys and values; AWS takes letters of other
// scripts as well.
var tagText = regexp.MustCompile(`^[a-zA-Z0-9\s_.:=+\-@/]*$`)

// CheckTags applies CAPA's rules for additionalTags, and keeps weir's own keys
// out of them: they say who owns a resource.
func CheckTags(r kinds.Reporter, p intent.Path, tags map[string]string) {
	if len(tags) > 50 {
		r.Error(p, "too-many-tags", fmt.Sprintf("%s has %d tags; AWS takes 50", p, len(tags)), "")
	}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		at, v := p.Join(k), tags[k]
		switch {
		case k == "" || len([]rune(k)) > 128:
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q must have 1 to 128 characters", k), "")
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q begins with aws:, which AWS keeps for itself", k), "")
		case strings.HasPrefix(k, kinds.GroupWeir+"/"):
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q is weir's own", k), "keys that begin with weir.dev/ say who owns a resource")
		case !tagText.MatchString(k):
			r.Error(at, "bad-tag", fmt.Sprintf("tag key %q has a character that AWS does not take", k), "letters, digits, spaces and _ . : = + - @ / are taken")
		case len([]rune(v)) > 256:
			r.Error(at, "bad-tag", fmt.Sprintf("the value of tag %q is longer than 256 characters", k), "")
		case !tagText.MatchString(v):
			r.Error(at, "bad-tag", fmt.Sprintf("the value of tag %q has a character that AWS does not take", k), "letters, digits, spaces and _ . : = + - @ / are taken")
		}
	}
}

// checkReferences applies the rules for lists of ids and filters.
func checkReferences(r kinds.Reporter, p intent.Path, refs []kinds.AWSResourceReference, prefix string) {
	for i, ref := range refs {
		at := p.Join(intent.Index(i))
		switch {
		case ref.ID != nil && ref.Filters != nil:
			r.Error(at, "exclusive", at.String()+" has both id and filters", "write one of them")
		case ref.ID == nil && len(ref.Filters) == 0 && ref.ARN != nil:
			r.Error(at.Join("arn"), "not-carried", at.String()+" names an ARN, which nothing reads", "write its id instead")
		case ref.ID == nil && len(ref.Filters) == 0:
			r.Error(at, "missing-required", at.String()+" names nothing", "write id or filters")
		case ref.ID != nil:
			kinds.CheckID(r, at.Join("id"), *ref.ID, prefix)
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

// checkVolumes applies CAPA's rules for the volumes of a group pool; EKS and EC2
// check those of a managed pool by the same rules.
func checkVolumes(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) {
	if lt.RootVolume != nil {
		checkVolume(r, p.Join("rootVolume"), lt.RootVolume, 125)
	}
	seen := map[string]bool{}
	for i := range lt.NonRootVolumes {
		at, v := p.Join("nonRootVolumes", intent.Index(i)), &lt.NonRootVolumes[i]
		checkVolume(r, at, v, 0)
		if v.DeviceName == "" {
			r.Error(at.Join("deviceName"), "missing-required", at.Join("deviceName").String()+" is required", "name the device, such as /dev/sdb")
		} else if seen[v.DeviceName] {
			r.Error(at.Join("deviceName"), "duplicate", fmt.Sprintf("device %q is written twice", v.DeviceName), "")
		}
		seen[v.DeviceName] = true
	}
}

func checkVolume(r kinds.Reporter, p intent.Path, v *kinds.Volume, minThroughput int64) {
	if (v.Type == "io1" || v.Type == "io2") && v.IOPS == 0 {
		r.Error(p.Join("iops"), "missing-required", fmt.Sprintf("%s is required for volume type %s", p.Join("iops"), v.Type), "")
	}
	if v.Throughput == nil {
		return
	}
	at := p.Join("throughput")
	switch {
	case v.Type != "gp3":
		r.Error(at, "exclusive", at.String()+" is for volume type gp3 only", "")
	case *v.Throughput < minThroughput || *v.Throughput > 2000:
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d, must be %d to 2000", at, *v.Throughput, minThroughput), "")
	}
}

// spotPrice is CAPA's pattern for maxPrice, which its schema does not enforce
// because of a slip; EC2 refuses what does not match.
var spotPrice = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// checkMarket applies CAPA's rules for spot instances and capacity reservations.
func checkMarket(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) {
	spot, reservation := lt.SpotMarketOptions, lt.CapacityReservationID
	if spot != nil && spot.MaxPrice != nil && *spot.MaxPrice != "" && !spotPrice.MatchString(*spot.MaxPrice) {
		at := p.Join("spotMarketOptions", "maxPrice")
		r.Error(at, "bad-value", fmt.Sprintf("%s is no price: %q", at, *spot.MaxPrice), `write US dollars an hour, such as "0.05"`)
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
