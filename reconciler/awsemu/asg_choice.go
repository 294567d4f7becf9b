package awsemu

import (
	"sort"
	"strconv"
)

// choice is one way to launch a member: a template version and an instance type.
type choice struct {
	spec         ltSpec // with the version as a number
	template     *launchTemplate
	version      *ltVersion
	instanceType string
	imageID      string // "": the template's
	weight       string
	override     bool
}

// choices are the ways to launch that a configuration offers, in its order of
// preference. There is at least one, or a fault.
func (r *region) choices(c groupConfig) ([]choice, *apiError) {
	if c.Mixed == nil {
		base, err := r.baseChoice(*c.Template)
		if err != nil {
			return nil, err
		}
		return r.expand(base, base.version.Data.sub("InstanceRequirements"))
	}
	overrides := c.Mixed.Overrides
	if len(overrides) == 0 {
		overrides = []override{{}}
	}
	var all []choice
	for _, o := range overrides {
		spec := c.Mixed.Base
		if o.Template != nil {
			spec = *o.Template
		}
		ch, err := r.baseChoice(spec)
		if err != nil {
			return nil, err
		}
		ch.imageID, ch.weight = o.ImageID, o.Weight
		if o.InstanceType != "" {
			ch.instanceType, ch.override = o.InstanceType, true
			all = append(all, ch)
			continue
		}
		requirements := o.Requirements
		if requirements == nil {
			requirements = ch.version.Data.sub("InstanceRequirements")
		}
		expanded, err := r.expand(ch, requirements)
		if err != nil {
			return nil, err
		}
		all = append(all, expanded...)
	}
	return all, nil
}

func (r *region) baseChoice(spec ltSpec) (choice, *apiError) {
	t, v, err := r.ltResolve(spec.ID, spec.Name, spec.Version)
	if err != nil {
		return choice{}, malformedTemplate(err)
	}
	return choice{
		spec:     ltSpec{ID: t.ID, Name: t.Name, Version: decimal(v.Number)},
		template: t, version: v, instanceType: v.Data.text("InstanceType"),
	}, nil
}

// expand makes a choice of each instance type that meets requirements; without
// requirements the choice stays as it is.
func (r *region) expand(ch choice, requirements ltData) ([]choice, *apiError) {
	if len(requirements) == 0 {
		return []choice{ch}, nil
	}
	arch := ""
	if id, err := r.resolveImage(first(ch.imageID, ch.version.Data.text("ImageId"))); err == nil {
		if im := r.EC2.Images.get(id); im != nil {
			arch = im.Architecture
		}
	}
	var out []choice
	for _, name := range typesMeeting(requirements, arch) {
		one := ch
		one.instanceType, one.override = name, true
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, fail("ValidationError", "No instance types satisfy the requirements in InstanceRequirements.")
	}
	return out, nil
}

// typesMeeting are the names of the instance types that meet requirements,
// smallest first. Only vCPUs, memory, names, burstable performance and the
// image's architecture tell the emulator's types apart; the other attributes
// exclude none.
func typesMeeting(req ltData, arch string) []string {
	types := instanceTypes()
	var names []string
	for name, t := range types {
		if arch != "" && t.arch != arch || !within(req.sub("VCpuCount"), float64(t.vcpus)) ||
			!within(req.sub("MemoryMiB"), float64(t.memory)) ||
			!within(req.sub("MemoryGiBPerVCpu"), float64(t.memory)/1024/float64(t.vcpus)) {
			continue
		}
		bursts := req.text("BurstablePerformance")
		if burstable(name) && (bursts == "" || bursts == "excluded") || !burstable(name) && bursts == "required" {
			continue
		}
		allowed, excluded := req.texts("AllowedInstanceTypes"), req.texts("ExcludedInstanceTypes")
		if len(allowed) > 0 && !anyWildcard(allowed, name) || anyWildcard(excluded, name) {
			continue
		}
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := types[names[i]], types[names[j]]
		if a.vcpus != b.vcpus {
			return a.vcpus < b.vcpus
		}
		if a.memory != b.memory {
			return a.memory < b.memory
		}
		return names[i] < names[j]
	})
	return names
}

func within(bounds ltData, v float64) bool {
	low, err := strconv.ParseFloat(bounds.text("Min"), 64)
	if err == nil && v < low {
		return false
	}
	high, err := strconv.ParseFloat(bounds.text("Max"), 64)
	return err != nil || v <= high
}

func anyWildcard(patterns []string, text string) bool {
	for _, p := range patterns {
		if wildcard(p, text) {
			return true
		}
	}
	return false
}

// units is what a member of the choice counts for: its weight, or what the
// group's capacity type counts.
func (ch *choice) units(capacityType string) int64 {
	t := instanceTypes()[ch.instanceType]
	switch capacityType {
	case "vcpu":
		return max(t.vcpus, 1)
	case "memory-mib":
		return max(t.memory, 1)
	}
	if n, err := strconv.ParseInt(ch.weight, 10, 64); err == nil {
		return n
	}
	return 1
}

// tryLaunch looks for what would keep EC2 from launching, without launching.
func (r *region) tryLaunch(ch choice, subnets []string) *apiError {
	in := &instance{
		Type:    first(ch.instanceType, "m1.small"),
		ImageID: first(ch.imageID, ch.version.Data.text("ImageId")), KeyName: ch.version.Data.text("KeyName"), Tags: tags{},
	}
	if len(subnets) > 0 {
		in.VpcID = r.EC2.Subnets.get(subnets[0]).VpcID
	} else if v := r.defaultVPC(); v != nil {
		in.VpcID = v.ID
	}
	if err := r.equipInstance(in, launchSpec{Data: ch.version.Data}); err != nil {
		return malformedTemplate(err)
	}
	return nil
}
