package awsemu

import (
	"sort"
	"strconv"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func parseDescribeInstanceTypes(p *params) describe {
	p.boolean("IncludeUnsupportedInRegion") // every region has every type
	d := parseDescribe(p, "InstanceType", 5, 100, 100)
	if len(d.ids) > 100 {
		p.bad("InstanceType", strconv.Itoa(len(d.ids)), "At most 100 instance types can be named in one request.")
	}
	return d
}

func burstable(name string) bool {
	return strings.HasPrefix(name, "t") && !strings.HasPrefix(name, "trn")
}

func describeInstanceTypes(rq *request, in describe) error {
	all := instanceTypes()
	var unknown []string
	for _, name := range in.ids {
		if _, ok := all[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fail("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", strings.Join(unknown, ", "))
	}
	match, err := matcher(in.filters, attributes[string]{
		"instance-type":                         one(func(n string) string { return n }),
		"processor-info.supported-architecture": one(func(n string) string { return all[n].arch }),
		"vcpu-info.default-vcpus":               one(func(n string) string { return decimal(all[n].vcpus) }),
		"memory-info.size-in-mib":               one(func(n string) string { return decimal(all[n].memory) }),
		"burstable-performance-supported":       one(func(n string) string { return strconv.FormatBool(burstable(n)) }),
		"current-generation":                    one(func(n string) string { return strconv.FormatBool(n != "m1.small") }),
		"bare-metal":                            one(func(string) string { return "false" }),
		"supported-usage-class":                 func(string) []string { return []string{"on-demand", "spot"} },
		"supported-virtualization-type":         one(func(string) string { return "hvm" }),
		"supported-root-device-type":            one(func(string) string { return "ebs" }),
	}, func(string) tags { return nil })
	if err != nil {
		return err
	}
	w := &rq.xml
	w.open("instanceTypeSet")
	next, err := rq.page(instanceTypeNames(), in.token, in.limit, func(name string) bool {
		if len(in.ids) > 0 && !contains(in.ids, name) || !match(name) {
			return false
		}
		w.open("item")
		w.writeInstanceType(name, all[name])
		w.close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.close("instanceTypeSet")
	w.optional("nextToken", next)
	return nil
}

func (w *xmlWriter) writeInstanceType(name string, t instanceType) {
	w.text("instanceType", name)
	w.boolean("currentGeneration", name != "m1.small")
	w.texts("supportedUsageClasses", "item", []string{"on-demand", "spot"})
	w.texts("supportedRootDeviceTypes", "item", []string{"ebs"})
	w.texts("supportedVirtualizationTypes", "item", []string{"hvm"})
	w.boolean("bareMetal", false)
	w.text("hypervisor", "nitro")
	w.open("processorInfo")
	w.texts("supportedArchitectures", "item", []string{t.arch})
	w.close("processorInfo")
	threads := int64(2)
	if t.arch == "arm64" || t.vcpus == 1 {
		threads = 1
	}
	w.open("vCpuInfo")
	w.integer("defaultVCpus", t.vcpus)
	w.integer("defaultCores", t.vcpus/threads)
	w.integer("defaultThreadsPerCore", threads)
	w.close("vCpuInfo")
	w.open("memoryInfo")
	w.integer("sizeInMiB", t.memory)
	w.close("memoryInfo")
	w.boolean("burstablePerformanceSupported", burstable(name))
}

type offeringsInput struct {
	describe
	by string
}

func parseDescribeOfferings(p *params) offeringsInput {
	in := offeringsInput{
		describe: parseDescribe(p, "", 5, 1000, 1000),
		by:       p.text("LocationType"),
	}
	if in.by == "" {
		in.by = "region"
	}
	return in
}

// describeInstanceTypeOfferings says that every type is offered everywhere.
func describeInstanceTypeOfferings(rq *request, in offeringsInput) error {
	r := rq.region
	places := []string{r.Name}
	switch in.by {
	case "availability-zone":
		places = r.zones()
	case "availability-zone-id":
		places = []string{r.zoneID(0), r.zoneID(1), r.zoneID(2)}
	}
	match, err := matcher(in.filters, attributes[[2]string]{
		"instance-type": one(func(o [2]string) string { return o[0] }),
		"location":      one(func(o [2]string) string { return o[1] }),
	}, func([2]string) tags { return nil })
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
	w := &rq.xml
	w.open("instanceTypeOfferingSet")
	next, err := rq.page(keys, in.token, in.limit, func(key string) bool {
		name, place, _ := strings.Cut(key, " ")
		if !match([2]string{name, place}) {
			return false
		}
		w.open("item")
		w.text("instanceType", name)
		w.text("locationType", in.by)
		w.text("location", place)
		w.close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.close("instanceTypeOfferingSet")
	w.optional("nextToken", next)
	return nil
}
