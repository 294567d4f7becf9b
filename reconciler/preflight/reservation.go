package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// bond says that machines run only in reserved capacity.
type bond struct {
	// ids lists the named reservations, with their fields. If it is empty, any open reservation will do.
	ids []place
	// object and path identify the field with this setting.
	object intent.ObjectRef
	path   intent.Path
}

// bound returns the bond of a launch, and whether it has one that weir can judge. The group's
// setting takes precedence over its launch template, unless it leaves the choice to the template.
// If the group asks for reserved capacity first, AWS launches elsewhere too, so nothing can fail.
// weir does not read the contents of a resource group.
// Assumed of AWS: reservation-or-nothing.
func (l *launch) bound() (b bond, ok bool) {
	t := l.data.CapacityReservationSpecification
	if t != nil && (t.TargetID != "" || t.Preference == "capacity-reservations-only") {
		if t.TargetID != "" {
			b.object, b.path = fieldOf(l.pool, "CapacityReservationSpecification.CapacityReservationId")
			b.ids = []place{{t.TargetID, b.object, b.path}}
		} else {
			b.object, b.path = fieldOf(l.pool, "CapacityReservationSpecification.CapacityReservationPreference")
		}
		ok = true
	}
	grouped := t != nil && t.TargetGroupARN != ""
	if g := l.reservation; g != nil && g.CapacityReservationPreference != "" && g.CapacityReservationPreference != "default" {
		if ok = g.CapacityReservationPreference == "capacity-reservations-only"; !ok {
			return b, false
		}
		b.object, b.path = l.pool.Options, intent.Path{"spec", "autoScalingGroup", "capacityReservationSpecification"}
		if at := g.CapacityReservationTarget; at != nil {
			grouped, b.ids = len(at.CapacityReservationResourceGroupARNs) > 0, nil
			for i, id := range at.CapacityReservationIDs {
				b.ids = append(b.ids, place{id, b.object, b.path.Join("capacityReservationTarget", "capacityReservationIds", intent.Index(i))})
			}
		}
	}
	return b, ok && !grouped
}

// takes reports whether machines with the bond may run in a reservation.
func (b bond) takes(c Reservation) bool {
	if len(b.ids) == 0 {
		return c.Open
	}
	return slices.ContainsFunc(b.ids, func(id place) bool { return id.value == c.ID })
}

// reservations checks whether the machines of launches fit into the reserved capacity to which they are
// bound. It adds up only pools with exactly the same reservations.
func (v *verdict) reservations(launches []*launch) {
	wanted := map[string]int64{}
	for _, l := range launches {
		b, ok := l.bound()
		if !ok || len(l.types) == 0 {
			continue
		}
		all, ok, _ := know(v, v.facts.reserved, "")
		zones := v.zones(l)
		if !ok || len(zones) == 0 {
			continue
		}
		if fitting, ok := v.fitting(l, b, all, zones); ok {
			v.reservedRoom(l, b, fitting, zones, wanted)
		}
	}
}

// fitting returns the reservations in which machines of a launch may run. ok is false if it has
// already reported that none fits.
func (v *verdict) fitting(l *launch, b bond, all []Reservation, zones []string) (out []Reservation, ok bool) {
	var gone []string
	for _, id := range b.ids {
		if !slices.ContainsFunc(all, func(c Reservation) bool { return c.ID == id.value }) {
			gone = append(gone, id.value)
			v.facts.reserved.doubt("")
			v.findings.warn(codeUnknown, id.object, id.path, "AWS has no active capacity reservation "+id.value, "correct it; a reservation that has ended, was cancelled or begins later takes no machine")
		}
	}
	if len(gone) > 0 && len(gone) == len(b.ids) {
		v.facts.reserved.condemn("")
		v.noMachine(l, "AWS has no active capacity reservation "+strings.Join(gone, " or "))
	}
	missing, named := len(gone) > 0, ""
	for _, c := range all {
		if !b.takes(c) {
			continue
		}
		named = ": " + c.ID + " is for " + c.Type + " in " + c.Zone
		if slices.Contains(zones, c.Zone) && slices.ContainsFunc(l.types, func(t place) bool { return t.value == c.Type }) {
			out = append(out, c)
		}
	}
	if len(out) > 0 || missing {
		return out, len(out) > 0
	}
	var types []string
	for _, t := range l.types {
		types = append(types, t.value)
	}
	if len(b.ids) == 0 {
		named = ""
	}
	v.facts.reserved.doubt("")
	v.findings.warn(codeShort, b.object, b.path, "machines of the pool run in reserved capacity alone, and no such reservation is for "+strings.Join(types, " or ")+" in "+strings.Join(zones, ", ")+named+": AWS launches none",
		"reserve capacity of one of the pool's instance types in one of its zones, or let machines run outside reservations")
	return nil, false
}

// reservedRoom checks whether the fitting reservations have room for a launch.
func (v *verdict) reservedRoom(l *launch, b bond, fitting []Reservation, zones []string, wanted map[string]int64) {
	var ids []string
	room, bare := int64(0), slices.Clone(zones)
	for _, c := range fitting {
		ids, room = append(ids, c.ID), room+c.Free
		bare = slices.DeleteFunc(bare, func(z string) bool { return z == c.Zone })
	}
	if len(bare) > 0 && l.places {
		object, path := subnetsField(l.pool)
		v.findings.warn(codeShort, object, path, "machines of the pool run in reserved capacity alone, and none that fits is in "+strings.Join(bare, ", ")+", so no machine starts in the subnets there", "remove the subnets of the zone, or reserve capacity there")
	}
	slices.Sort(ids)
	key := strings.Join(ids, ", ")
	before := wanted[key]
	wanted[key] += l.onDemand
	if before > room || wanted[key] <= room {
		return
	}
	v.facts.reserved.doubt("")
	object, path := sizeField(l.pool)
	follows, advice := "AWS launches only some", "enlarge the reservation: aws ec2 modify-capacity-reservation --capacity-reservation-id "+ids[0]+" --instance-count N"
	if l.onlySurges() && room-before < 1 {
		var first string
		object, path, first = l.endsFirst()
		follows, advice = cannotBegin, advice+", "+first
	}
	v.findings.warn(codeShort, object, path, fmt.Sprintf("the pool's machines run in reserved capacity alone (%s), which has room for %d, and the plan wants %d more%s: %s", key, room, wanted[key], withOthers(before), follows), advice)
}
