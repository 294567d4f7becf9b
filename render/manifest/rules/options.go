package rules

import (
	"fmt"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// checkPoolOptions applies the rules of EC2 that concern only the options: RequestLaunchTemplateData in its
// API reference.
func checkPoolOptions(o *kinds.Decoded[kinds.PoolOptionsSpec], r kinds.Reporter) {
	checkGroupOptions(r, o.Spec.AutoScalingGroup)
	checkNodegroupOptions(r, o.Spec.Nodegroup)
	checkDrainer(r, o.Spec.Drainer)
	if kind := o.Spec.PoolRef.Kind; kinds.IsLaunchConfig(kind) {
		for at, written := range map[string]bool{"autoScalingGroup": o.Spec.AutoScalingGroup != nil, "nodegroup": o.Spec.Nodegroup != nil, "drainer": o.Spec.Drainer != nil} {
			if written {
				r.Error(path("spec", at), "not-allowed", "spec."+at+" is not allowed in options of an "+kind+", which is a launch template", "write it in a PoolOptions for each of its pools")
			}
		}
	}
	t := o.Spec.LaunchTemplate
	if t == nil {
		return
	}
	checkInterfaces(r, kinds.OptionsTemplate.Join("networkInterfaces"), t.NetworkInterfaces)
	if t.Placement != nil {
		checkPlacementOptions(r, kinds.OptionsTemplate.Join("placement"), t.Placement)
	}
	kinds.CheckARN(r, kinds.OptionsTemplate.Join("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationResourceGroupArn"), t.ReservationGroup())
}

func checkPlacementOptions(r kinds.Reporter, at intent.Path, p *intent.Placement) {
	if p.GroupName != "" && p.GroupID != "" {
		r.Error(at.Join("groupId"), "exclusive", at.Join("groupId").String()+" excludes groupName", "name the placement group once")
	}
	if p.PartitionNumber != 0 && p.GroupName == "" && p.GroupID == "" {
		r.Error(at.Join("partitionNumber"), "incomplete", at.Join("partitionNumber").String()+" needs groupName or groupId", "it counts the partitions of a placement group")
	}
	if p.HostResourceGroupARN != "" && p.Tenancy != "" && p.Tenancy != "host" {
		r.Error(at.Join("tenancy"), "exclusive", fmt.Sprintf("%s %s excludes hostResourceGroupArn", at.Join("tenancy"), p.Tenancy), "write host, or leave it out")
	}
	if p.HostResourceGroupARN != "" && p.HostID != "" {
		r.Error(at.Join("hostId"), "exclusive", at.Join("hostId").String()+" excludes hostResourceGroupArn", "")
	}
}

// checkInterfaces checks network interfaces. The device indexes on a network card must be distinct. The first
// interface of the first card is the primary one.
func checkInterfaces(r kinds.Reporter, p intent.Path, list []intent.NetworkInterface) {
	indexes := map[[2]int32]int{}
	for i := range list {
		n, at := &list[i], p.Join(intent.Index(i))
		card := [2]int32{intent.Value(n.NetworkCardIndex), intent.Value(n.DeviceIndex)}
		if first, taken := indexes[card]; taken {
			r.To.Add(kinds.Fault{Code: "duplicate", Summary: fmt.Sprintf("two network interfaces have device index %d on network card %d", card[1], card[0]), Ref: r.Ref, Path: at.Join("deviceIndex"),
				Related: []kinds.RelatedField{{Ref: r.Ref, Path: p.Join(intent.Index(first)), Message: "the other one"}}})
		} else {
			indexes[card] = i
		}
		if n.InterfaceType == "efa-only" {
			checkEFAOnly(r, at, n, card == [2]int32{})
		}
		if intent.Value(n.AssociatePublicIPAddress) && len(list) > 1 {
			r.Warn(at.Join("associatePublicIpAddress"), "exclusive", at.Join("associatePublicIpAddress").String()+" excludes further network interfaces",
				"EC2 gives a public address to instances with one interface; let the subnet or a load balancer do it")
		}
		if e := n.EnaSrdSpecification; e != nil && e.EnaSrdUDPSpecification != nil && intent.Value(e.EnaSrdUDPSpecification.EnaSrdUDPEnabled) && !intent.Value(e.EnaSrdEnabled) {
			at := at.Join("enaSrdSpecification", "enaSrdUdpSpecification", "enaSrdUdpEnabled")
			r.Error(at, "incomplete", at.String()+" needs enaSrdEnabled: true", "")
		}
	}
	if _, primary := indexes[[2]int32{}]; len(list) > 0 && !primary {
		r.Error(p, "incomplete", p.String()+" has no interface with deviceIndex 0 on network card 0", "an instance cannot start without its primary interface")
	}
}

// checkEFAOnly refuses addresses on an interface of type efa-only, which cannot have any.
func checkEFAOnly(r kinds.Reporter, at intent.Path, n *intent.NetworkInterface, primary bool) {
	if primary {
		r.Error(at.Join("interfaceType"), "exclusive", at.Join("interfaceType").String()+" efa-only is not possible for the primary interface", "write efa or interface; the primary interface needs an address")
	}
	for field, written := range map[string]bool{
		"associatePublicIpAddress": intent.Value(n.AssociatePublicIPAddress), "associateCarrierIpAddress": intent.Value(n.AssociateCarrierIPAddress),
		"ipv4PrefixCount": n.IPv4PrefixCount != 0, "ipv6AddressCount": n.IPv6AddressCount != 0, "ipv6PrefixCount": n.IPv6PrefixCount != 0,
		"primaryIpv6": intent.Value(n.PrimaryIPv6), "secondaryPrivateIpAddressCount": n.SecondaryPrivateIPAddressCount != 0,
	} {
		if written {
			r.Error(at.Join(field), "exclusive", at.Join(field).String()+" excludes interfaceType efa-only, which has no addresses", "")
		}
	}
}
