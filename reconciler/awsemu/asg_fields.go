package awsemu

import (
	"slices"
	"sync"
)

// asgFields renames fields of EC2's protocol to the query protocol's: one name
// for request and answer, lists of members.
func asgFields(fields []ltField) []ltField {
	out := make([]ltField, len(fields))
	for i, f := range fields {
		f.wire, f.reply, f.item = f.name, f.name, "member"
		f.fields = asgFields(f.fields)
		out[i] = f
	}
	return out
}

// requirementFields are the members of InstanceRequirements. Those of
// BaselinePerformanceFactors are not known: the emulator could not follow them.
var requirementFields = sync.OnceValue(func() []ltField {
	for _, f := range templateFields() {
		if f.name == "InstanceRequirements" {
			return slices.DeleteFunc(asgFields(f.fields), func(f ltField) bool { return f.name == "BaselinePerformanceFactors" })
		}
	}
	return nil
})

var maintenanceFields = sync.OnceValue(func() []ltField {
	return asgFields([]ltField{intField("MinHealthyPercentage"), intField("MaxHealthyPercentage")})
})

var zoneDistributionFields = sync.OnceValue(func() []ltField {
	return asgFields([]ltField{textField("CapacityDistributionStrategy").oneOf("balanced-only", "balanced-best-effort", "reservations-then-balanced")})
})

var impairmentFields = sync.OnceValue(func() []ltField {
	return asgFields([]ltField{
		boolField("ZonalShiftEnabled"),
		textField("ImpairedZoneHealthCheckBehavior").oneOf("ReplaceUnhealthy", "IgnoreUnhealthy"),
	})
})

var reservationFields = sync.OnceValue(func() []ltField {
	return asgFields([]ltField{
		textField("CapacityReservationPreference").oneOf("capacity-reservations-only", "capacity-reservations-first", "none", "default"),
		structField("CapacityReservationTarget",
			textsField("CapacityReservationIds", "", ""),
			textsField("CapacityReservationResourceGroupArns", "", ""),
		),
	})
})

var lifecyclePolicyFields = sync.OnceValue(func() []ltField {
	return asgFields([]ltField{structField("RetentionTriggers", textField("TerminateHookAbandon").oneOf("retain", "terminate"))})
})

// optionalFields reads a structure, nil where it was not sent.
func optionalFields(p *params, name string, fields []ltField) ltData {
	sub := p.sub(name)
	if sub == nil {
		return nil
	}
	return parseFields(sub, fields)
}
