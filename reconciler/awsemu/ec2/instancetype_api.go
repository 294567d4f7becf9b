package ec2

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

type describeInstanceTypesInput struct {
	describe
	InstanceTypes              []string
	IncludeUnsupportedInRegion bool // every region has every type
}

func (in *describeInstanceTypesInput) Check() error {
	if len(in.InstanceTypes) > 100 {
		return badValue("InstanceType", strconv.Itoa(len(in.InstanceTypes)), "At most 100 instance types can be named in one request.")
	}
	return in.bound(5, 100, 100)
}

func Burstable(name string) bool {
	return strings.HasPrefix(name, "t") && !strings.HasPrefix(name, "trn")
}

func describeInstanceTypes(rq *request, in describeInstanceTypesInput) error {
	all := InstanceTypes()
	var unknown []string
	for _, name := range in.InstanceTypes {
		if _, ok := all[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return wire.Fail("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", strings.Join(unknown, ", "))
	}
	match, err := matcher(in.Filters, attributes[string]{
		"instance-type":                         one(func(n string) string { return n }),
		"processor-info.supported-architecture": one(func(n string) string { return all[n].Arch }),
		"vcpu-info.default-vcpus":               one(func(n string) string { return wire.Decimal(all[n].Vcpus) }),
		"memory-info.size-in-mib":               one(func(n string) string { return wire.Decimal(all[n].Memory) }),
		"burstable-performance-supported":       one(func(n string) string { return strconv.FormatBool(Burstable(n)) }),
		"current-generation":                    one(func(n string) string { return strconv.FormatBool(n != "m1.small") }),
		"bare-metal":                            one(func(string) string { return "false" }),
		"supported-usage-class":                 func(string) []string { return []string{"on-demand", "spot"} },
		"supported-virtualization-type":         one(func(string) string { return "hvm" }),
		"supported-root-device-type":            one(func(string) string { return "ebs" }),
	}, func(string) world.Tags { return nil })
	if err != nil {
		return err
	}
	w := &rq.XML
	w.Open("instanceTypeSet")
	next, err := rq.Page(instanceTypeNames(), in.NextToken, in.limit, func(name string) bool {
		if len(in.InstanceTypes) > 0 && !slices.Contains(in.InstanceTypes, name) || !match(name) {
			return false
		}
		w.Open("item")
		writeInstanceType(w, name, all[name])
		w.Close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("instanceTypeSet")
	w.Optional("nextToken", next)
	return nil
}

func writeInstanceType(w *wire.XML, name string, t instanceType) {
	w.Text("instanceType", name)
	w.Boolean("currentGeneration", name != "m1.small")
	w.Texts("supportedUsageClasses", "item", []string{"on-demand", "spot"})
	w.Texts("supportedRootDeviceTypes", "item", []string{"ebs"})
	w.Texts("supportedVirtualizationTypes", "item", []string{"hvm"})
	w.Boolean("bareMetal", false)
	w.Text("hypervisor", hypervisor(name))
	w.Boolean("freeTierEligible", name == "t2.micro" || name == "t3.micro")
	w.Boolean("instanceStorageSupported", hasDisks(name))
	w.Boolean("hibernationSupported", false)
	w.Boolean("dedicatedHostsSupported", !Burstable(name))
	w.Boolean("autoRecoverySupported", !hasDisks(name))
	w.Texts("supportedBootModes", "item", []string{"legacy-bios", "uefi"})
	w.Text("nitroEnclavesSupport", support(enclaves(name, t), "supported", "unsupported"))
	w.Text("nitroTpmSupport", support(hypervisor(name) == "nitro" && t.Arch == "x86_64", "supported", "unsupported"))
	w.Open("processorInfo")
	w.Texts("supportedArchitectures", "item", []string{t.Arch})
	w.Close("processorInfo")
	threads := int64(2)
	if t.Arch == "arm64" || t.Vcpus == 1 {
		threads = 1
	}
	w.Open("vCpuInfo")
	w.Integer("defaultVCpus", t.Vcpus)
	w.Integer("defaultCores", t.Vcpus/threads)
	w.Integer("defaultThreadsPerCore", threads)
	w.Close("vCpuInfo")
	w.Open("memoryInfo")
	w.Integer("sizeInMiB", t.Memory)
	w.Close("memoryInfo")
	w.Boolean("burstablePerformanceSupported", Burstable(name))
	nitro := hypervisor(name) == "nitro"
	w.Open("ebsInfo")
	w.Text("ebsOptimizedSupport", support(nitro, "default", "supported"))
	w.Text("encryptionSupport", "supported")
	w.Text("nvmeSupport", support(nitro, "required", "unsupported"))
	w.Close("ebsInfo")
	cards, addresses := interfaces(t)
	w.Open("networkInfo")
	w.Text("networkPerformance", support(t.Vcpus < 48, "Up to 10 Gigabit", "25 Gigabit"))
	w.Integer("maximumNetworkInterfaces", cards)
	w.Integer("maximumNetworkCards", 1)
	w.Integer("defaultNetworkCardIndex", 0)
	w.Integer("ipv4AddressesPerInterface", addresses)
	w.Integer("ipv6AddressesPerInterface", addresses)
	w.Boolean("ipv6Supported", name != "m1.small")
	w.Text("enaSupport", support(nitro, "required", "supported"))
	w.Boolean("efaSupported", t.Vcpus >= 96 && nitro)
	w.Close("networkInfo")
	w.Open("placementGroupInfo")
	strategies := []string{"partition", "spread"}
	if !Burstable(name) {
		strategies = append([]string{"cluster"}, strategies...)
	}
	w.Texts("supportedStrategies", "item", strategies)
	w.Close("placementGroupInfo")
}

func support(has bool, yes, no string) string {
	if has {
		return yes
	}
	return no
}

// hypervisor returns xen for the families before the fifth generation, else nitro.
func hypervisor(name string) string {
	family, _, _ := strings.Cut(name, ".")
	return support(slices.Contains([]string{"m1", "m4", "c4", "r4", "t2", "i3", "p3"}, family), "xen", "nitro")
}

// hasDisks reports whether a type has local disks, according to its family's name.
func hasDisks(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	attributes := strings.TrimLeft(strings.TrimLeft(family, "abcdefghijklmnopqrstuvwxyz"), "0123456789")
	return strings.Contains(attributes, "d") || slices.Contains([]string{"i3", "i3en", "i4i", "im4gn", "g5", "g6", "p5", "trn1"}, family)
}

// enclaves reports approximately whether a type supports Nitro Enclaves: it has Nitro and a spare core, and
// is neither burstable nor a flex type.
func enclaves(name string, t instanceType) bool {
	family, _, _ := strings.Cut(name, ".")
	if hypervisor(name) != "nitro" || Burstable(name) || strings.HasSuffix(family, "-flex") || slices.Contains([]string{"a1", "g5g", "im4gn"}, family) {
		return false
	}
	return t.Arch == "arm64" && t.Vcpus >= 2 || t.Vcpus >= 4
}

// interfaces returns the maximum number of a type's network interfaces, and of addresses on each.
func interfaces(t instanceType) (cards, addresses int64) {
	switch {
	case t.Memory <= 1024:
		return 2, 2
	case t.Memory <= 2048 && t.Vcpus <= 2:
		return 3, 4
	case t.Memory <= 4096 && t.Vcpus <= 2:
		return 3, 6
	case t.Vcpus <= 2:
		return 3, 10
	case t.Vcpus <= 8:
		return 4, 15
	case t.Vcpus <= 48:
		return 8, 30
	}
	return 15, 50
}

type describeOfferingsInput struct {
	describe
	LocationType string
}

func (in *describeOfferingsInput) Check() error { return in.bound(5, 1000, 1000) }

// describeInstanceTypeOfferings answers that every type is offered everywhere, except where a seed excludes
// it.
func describeInstanceTypeOfferings(rq *request, in describeOfferingsInput) error {
	r := rq.Region
	places := []string{r.Name}
	switch in.LocationType {
	case "availability-zone":
		places = r.Zones()
	case "availability-zone-id":
		places = []string{r.ZoneID(0), r.ZoneID(1), r.ZoneID(2)}
	}
	match, err := matcher(in.Filters, attributes[[2]string]{
		"instance-type": one(func(o [2]string) string { return o[0] }),
		"location":      one(func(o [2]string) string { return o[1] }),
	}, func([2]string) world.Tags { return nil })
	if err != nil {
		return err
	}
	var keys []string
	for _, name := range instanceTypeNames() {
		for _, place := range places {
			keys = append(keys, name+" "+place)
		}
	}
	sort.Strings(keys)
	w := &rq.XML
	w.Open("instanceTypeOfferingSet")
	next, err := rq.Page(keys, in.NextToken, in.limit, func(key string) bool {
		name, place, _ := strings.Cut(key, " ")
		if !match([2]string{name, place}) || !r.offered(name, place) {
			return false
		}
		w.Open("item")
		w.Text("instanceType", name)
		w.Text("locationType", cmp.Or(in.LocationType, "region"))
		w.Text("location", place)
		w.Close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("instanceTypeOfferingSet")
	w.Optional("nextToken", next)
	return nil
}

// offered reports whether a type is offered in the region, or in a zone by name or id.
func (r *Region) offered(name, place string) bool {
	without := r.NotOffered[name]
	if place == r.Name {
		return len(without) < len(r.Zones())
	}
	return !slices.ContainsFunc(without, func(zone string) bool { return place == zone || place == r.ZoneIDOf(zone) })
}

// checkOffered refuses an instance of a type that its zone does not offer.
func (r launcher) checkOffered(in *Instance) *wire.Error {
	if r.offered(in.Type, in.Zone) {
		return nil
	}
	var others []string
	for _, zone := range r.Zones() {
		if r.offered(in.Type, zone) {
			others = append(others, zone)
		}
	}
	if len(others) == 0 {
		return wire.Fail("Unsupported", "The requested configuration is currently not supported. Please check the documentation for supported configurations.")
	}
	return wire.Fail("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s). Please retry your request by not specifying an Availability Zone or choosing %s.", in.Type, in.Zone, strings.Join(others, ", "))
}
