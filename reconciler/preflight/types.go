package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// feature is a feature that a launch template requires of an instance type. weir assumes that a type has a
// feature that AWS does not mention.
type feature struct {
	// member is the launch template's member that requires the feature.
	member string
	// what describes the feature in words.
	what string
	// lacks reports whether the type does not have the feature, with the reason if there is more to say.
	lacks func(t *InstanceType) (bool, string)
}

func no(b *bool) bool { return b != nil && !*b }

// without reports whether a list that AWS returned does not contain the feature.
func without(list []string, name string) bool { return len(list) > 0 && !slices.Contains(list, name) }

// features returns the features that a launch requires.
func features(l *launch) (out []feature) {
	d := &l.data
	ask := func(asked bool, member, what string, lacks func(t *InstanceType) bool) {
		if asked {
			out = append(out, feature{member, what, func(t *InstanceType) (bool, string) { return lacks(t), "" }})
		}
	}
	ask(d.EnclaveOptions != nil && intent.Value(d.EnclaveOptions.Enabled), "EnclaveOptions.Enabled", "enclaves", func(t *InstanceType) bool { return t.Enclaves == "unsupported" })
	ask(d.HibernationOptions != nil && intent.Value(d.HibernationOptions.Configured), "HibernationOptions.Configured", "hibernation", func(t *InstanceType) bool { return no(t.Hibernation) })
	ask(intent.Value(d.EbsOptimized), "EbsOptimized", "EBS optimization", func(t *InstanceType) bool { return t.EBSOptimized == "unsupported" })
	ask(d.Placement != nil && d.Placement.Tenancy == "host", "Placement.Tenancy", "dedicated hosts", func(t *InstanceType) bool { return no(t.Hosts) })
	if c := d.CPUOptions; c != nil {
		// An empty list means unknown, or a processor without features.
		ask(c.AmdSevSnp == "enabled", "CpuOptions.AmdSevSnp", "AMD SEV-SNP", func(t *InstanceType) bool { return without(t.Features, "amd-sev-snp") })
		ask(c.NestedVirtualization == "enabled", "CpuOptions.NestedVirtualization", "nested virtualization", func(t *InstanceType) bool { return without(t.Features, "nested-virtualization") })
		ask(c.CoreCount > 0, "CpuOptions.CoreCount", fmt.Sprintf("%d cores", c.CoreCount), func(t *InstanceType) bool { return len(t.Cores) > 0 && !slices.Contains(t.Cores, c.CoreCount) })
		ask(c.ThreadsPerCore > 0, "CpuOptions.ThreadsPerCore", fmt.Sprintf("%d threads for each core", c.ThreadsPerCore), func(t *InstanceType) bool { return len(t.Threads) > 0 && !slices.Contains(t.Threads, c.ThreadsPerCore) })
	}
	if n := d.NetworkPerformanceOptions; n != nil && n.BandwidthWeighting != "" && n.BandwidthWeighting != "default" {
		ask(true, "NetworkPerformanceOptions.BandwidthWeighting", "the bandwidth weighting "+n.BandwidthWeighting, func(t *InstanceType) bool { return without(t.Weightings, n.BandwidthWeighting) })
	}
	if m := d.InstanceMarketOptions; m != nil && m.MarketType != "" {
		ask(true, "InstanceMarketOptions.MarketType", "the market "+m.MarketType, func(t *InstanceType) bool { return without(t.Markets, m.MarketType) })
	}
	for i, m := range d.BlockDeviceMappings {
		ask(intent.Value(m.Ebs.Encrypted), fmt.Sprintf("BlockDeviceMappings[%d].Ebs.Encrypted", i), "encrypted volumes", func(t *InstanceType) bool { return t.Encrypted == "unsupported" })
	}
	return append(out, interfaceFeatures(d)...)
}

// interfaceFeatures returns the features that network interfaces require.
func interfaceFeatures(d *intent.TemplateData) (out []feature) {
	efas := int32(0)
	for i, n := range d.NetworkInterfaces {
		member := func(name string) string { return fmt.Sprintf("NetworkInterfaces[%d].%s", i, name) }
		if n.InterfaceType == "efa" || n.InterfaceType == "efa-only" {
			efas++
			most := efas
			out = append(out, feature{member("InterfaceType"), "EFA", func(t *InstanceType) (bool, string) {
				if no(t.EFA) {
					return true, ""
				}
				return t.MaxEFAs > 0 && most > t.MaxEFAs, fmt.Sprintf("they have %d at most", t.MaxEFAs)
			}})
		}
		if n.EnaSrdSpecification != nil && intent.Value(n.EnaSrdSpecification.EnaSrdEnabled) {
			out = append(out, feature{member("EnaSrdSpecification.EnaSrdEnabled"), "ENA Express", func(t *InstanceType) (bool, string) { return no(t.EnaSrd), "" }})
		}
		if card := intent.Value(n.NetworkCardIndex); card > 0 {
			out = append(out, feature{member("NetworkCardIndex"), fmt.Sprintf("a network card %d", card), func(t *InstanceType) (bool, string) {
				return t.NetworkCards > 0 && card >= t.NetworkCards, fmt.Sprintf("they have %d, counted from 0", t.NetworkCards)
			}})
		}
	}
	if n := int32(len(d.NetworkInterfaces)); n > 1 {
		out = append(out, feature{fmt.Sprintf("NetworkInterfaces[%d]", n-1), fmt.Sprintf("%d network interfaces", n), func(t *InstanceType) (bool, string) {
			return t.MaxInterfaces > 0 && n > t.MaxInterfaces, fmt.Sprintf("they have %d at most", t.MaxInterfaces)
		}})
	}
	return out
}

// types checks whether the pool's instance types have the features that its launch template requires.
func (v *verdict) types(l *launch) {
	asked := features(l)
	if len(asked) == 0 && l.image == nil && !l.mixesMarkets() {
		return
	}
	lacking := make([][]string, len(asked))
	because := make([]string, len(asked))
	for _, at := range l.types {
		t, ok, _ := know(v, v.facts.types, at.value)
		if !ok {
			continue
		}
		for i, f := range asked {
			if lacks, why := f.lacks(&t); lacks {
				lacking[i] = append(lacking[i], at.value)
				because[i] = why
			}
		}
		if l.image != nil && l.image.Architecture != "" && without(t.Architectures, l.image.Architecture) {
			v.findings.warn(codeRefused, at.object, at.path, "the image "+l.image.ID+" is "+l.image.Architecture+", and "+at.value+" is "+strings.Join(t.Architectures, " and "), "name types of one architecture, or another image")
		}
		if l.mixesMarkets() && without(t.Markets, "spot") {
			v.findings.warn(codeRefused, at.object, at.path, "AWS has no Spot machines of the type "+at.value+", and the pool's policy asks for some", "name another type, or use only On-Demand machines")
		}
	}
	for i, f := range asked {
		if len(lacking[i]) == 0 {
			continue
		}
		summary := "machines of the type " + strings.Join(lacking[i], " and ") + " do not have " + f.what + ", so AWS launches none"
		if because[i] != "" {
			summary += ": " + because[i]
		}
		v.refused(l, f.member, summary, "remove it, or name other instance types")
	}
}

// mixesMarkets reports whether the pool's policy makes some machines Spot.
func (l *launch) mixesMarkets() bool {
	switch g, n := l.pool.Group, l.pool.Nodegroup; {
	case n != nil:
		return n.CapacityType == "SPOT"
	case g == nil || g.MixedInstancesPolicy == nil:
		return false
	default:
		return g.MixedInstancesPolicy.OnDemandPercentageAboveBaseCapacity < 100
	}
}
