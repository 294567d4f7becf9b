package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Reservation is an On-Demand Capacity Reservation. Each instance stores the reservation that it runs in.
type Reservation struct {
	ID       string
	Type     string
	Platform string
	Zone     string
	Total    int64
	Match    string // open or targeted
	Created  time.Time
	Ends     time.Time // zero: runs until it is canceled
	Canceled bool
	Tags     world.Tags
}

func (c *Reservation) state(now time.Time) string {
	switch {
	case c.Canceled:
		return "cancelled"
	case !c.Ends.IsZero() && !now.Before(c.Ends):
		return "expired"
	}
	return "active"
}

// free returns how many more instances a reservation has capacity for.
func (r *Region) free(c *Reservation) int64 {
	left := c.Total
	for _, id := range r.Instances.Sorted() {
		if in := r.Instances.Get(id); in.Reserved == c.ID && (in.State == InstancePending || in.State == InstanceRunning) {
			left--
		}
	}
	return max(left, 0)
}

// reserve looks for reserved capacity for an instance. A group's preference and target win over those of its
// launch template. Instances with neither run in open reservations while these have capacity. The emulator
// does not know the contents of resource groups, so instances with a resource group as target run outside
// reservations.
func (r launcher) reserve(in *Instance, spec LaunchSpec) *wire.Error {
	if in.Lifecycle == "spot" {
		return nil
	}
	own := spec.Data.Sub("CapacityReservationSpecification")
	target, preference := own.Sub("CapacityReservationTarget"), own.Text("CapacityReservationPreference")
	ids, targeted := []string{target.Text("CapacityReservationId")}, len(target) > 0
	grouped := target.Has("CapacityReservationResourceGroupArn")
	must := targeted || preference == "capacity-reservations-only"
	if p := spec.Reserved.Text("CapacityReservationPreference"); p != "" && p != "default" {
		preference, must = p, p == "capacity-reservations-only"
		if t := spec.Reserved.Sub("CapacityReservationTarget"); len(t) > 0 {
			ids, targeted, grouped = t.Texts("CapacityReservationIds"), true, t.Has("CapacityReservationResourceGroupArns")
		}
	}
	if preference == "none" || grouped {
		return nil
	}
	for _, id := range r.Reservations.Sorted() {
		c := r.Reservations.Get(id)
		if c.Type != in.Type || c.Zone != in.Zone || c.state(r.Now()) != "active" || targeted != slices.Contains(ids, id) || !targeted && c.Match != "open" {
			continue
		}
		if r.free(c) > 0 {
			in.Reserved = id
			return nil
		}
	}
	if must {
		return wire.Fail("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
	}
	return nil
}

type createReservationInput struct {
	InstanceType, InstancePlatform, AvailabilityZone, AvailabilityZoneID, InstanceMatchCriteria, Tenancy, EndDate, EndDateType, ClientToken string

	InstanceCount *int64
	ends          time.Time
	tagSpecifications
}

func (in *createReservationInput) Check() error {
	in.InstanceMatchCriteria = cmp.Or(in.InstanceMatchCriteria, "open")
	switch {
	case in.InstanceType == "":
		return wire.Fail("MissingParameter", "The request must contain the parameter InstanceType")
	case in.InstancePlatform == "":
		return wire.Fail("MissingParameter", "The request must contain the parameter InstancePlatform")
	case in.InstanceCount == nil:
		return wire.Fail("MissingParameter", "The request must contain the parameter InstanceCount")
	case (in.AvailabilityZone == "") == (in.AvailabilityZoneID == ""):
		return wire.Fail("InvalidParameterCombination", "Exactly one of AvailabilityZone and AvailabilityZoneId must be specified")
	case *in.InstanceCount < 1 || *in.InstanceCount > 1000:
		return badValue("InstanceCount", wire.Decimal(*in.InstanceCount), "Expecting value between 1 and 1000.")
	case in.Tenancy != "" && in.Tenancy != "default":
		return badValue("Tenancy", in.Tenancy, "The emulator reserves no dedicated capacity.")
	case (in.EndDate != "") != (in.EndDateType == "limited"):
		return wire.Fail("InvalidParameterCombination", "EndDate must be specified if, and only if, EndDateType is limited")
	}
	if in.EndDate != "" {
		var err error
		if in.ends, err = time.Parse(time.RFC3339, in.EndDate); err != nil {
			return badValue("EndDate", in.EndDate, "It is no time.")
		}
	}
	return in.read("capacity-reservation")
}

func createCapacityReservation(rq *request, in createReservationInput) error {
	r := rq.Region
	return rq.Idempotent(in.ClientToken, r.Reservations.Has, func() (string, error) {
		c, err := r.addReservation(r.NewID("cr"), in)
		if err != nil {
			return "", err
		}
		rq.XML.Open("capacityReservation")
		r.writeReservation(&rq.XML, c)
		rq.XML.Close("capacityReservation")
		return c.ID, nil
	})
}

// addReservation stores the reservation of a valid request.
func (r *Region) addReservation(id string, in createReservationInput) (*Reservation, error) {
	zone := in.AvailabilityZone
	for i, z := range r.Zones() {
		if r.ZoneID(i) == in.AvailabilityZoneID {
			zone = z
		}
	}
	if !slices.Contains(r.Zones(), zone) {
		return nil, wire.Fail("InvalidParameterValue", "Invalid availability zone: [%s]", cmp.Or(in.AvailabilityZone, in.AvailabilityZoneID))
	}
	if _, known := InstanceTypes()[in.InstanceType]; !known {
		return nil, wire.Fail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", in.InstanceType)
	}
	c := &Reservation{ID: id, Type: in.InstanceType, Platform: in.InstancePlatform, Zone: zone, Total: *in.InstanceCount, Match: in.InstanceMatchCriteria, Created: r.Now(), Ends: in.ends, Tags: in.tags}
	r.Reservations.Put(c.ID, c)
	return c, nil
}

func (r *Region) writeReservation(w *wire.XML, c *Reservation) {
	w.Text("capacityReservationId", c.ID)
	w.Text("ownerId", r.Account)
	w.Text("capacityReservationArn", r.ARN("ec2", "capacity-reservation/"+c.ID))
	w.Text("instanceType", c.Type)
	w.Text("instancePlatform", c.Platform)
	w.Text("availabilityZone", c.Zone)
	w.Text("tenancy", "default")
	w.Integer("totalInstanceCount", c.Total)
	w.Integer("availableInstanceCount", r.free(c))
	w.Boolean("ebsOptimized", false)
	w.Boolean("ephemeralStorage", false)
	w.Text("state", c.state(r.Now()))
	w.Time("startDate", c.Created)
	if c.Ends.IsZero() {
		w.Text("endDateType", "unlimited")
	} else {
		w.Time("endDate", c.Ends)
		w.Text("endDateType", "limited")
	}
	w.Text("instanceMatchCriteria", c.Match)
	w.Time("createDate", c.Created)
	w.Text("reservationType", "default")
	w.WriteTags(c.Tags)
}

type describeReservationsInput struct {
	describe
	CapacityReservationIDs []string
}

func (in *describeReservationsInput) Check() error { return in.bound(1, 1000, 1000) }

func describeCapacityReservations(rq *request, in describeReservationsInput) error {
	r := rq.Region
	match, err := matcher(in.Filters, attributes[*Reservation]{
		"instance-type":           one(func(c *Reservation) string { return c.Type }),
		"owner-id":                one(func(*Reservation) string { return r.Account }),
		"instance-platform":       one(func(c *Reservation) string { return c.Platform }),
		"availability-zone":       one(func(c *Reservation) string { return c.Zone }),
		"tenancy":                 one(func(*Reservation) string { return "default" }),
		"state":                   one(func(c *Reservation) string { return c.state(r.Now()) }),
		"instance-match-criteria": one(func(c *Reservation) string { return c.Match }),
	}, func(c *Reservation) world.Tags { return c.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in.describe, in.CapacityReservationIDs, &r.Reservations, match, noReservation, "capacityReservationSet", func(c *Reservation) { r.writeReservation(&rq.XML, c) })
}

func noReservation(id string) *wire.Error {
	if !validID(id, "cr-") {
		return malformedID("InvalidCapacityReservationId.Malformed", id, "cr-")
	}
	return wire.Fail("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
}

// cancelCapacityReservation ends a reservation. Its instances continue to run outside it.
func cancelCapacityReservation(rq *request, in struct{ CapacityReservationID string }) error {
	c := rq.Region.Reservations.Get(in.CapacityReservationID)
	if c == nil {
		return noReservation(in.CapacityReservationID)
	}
	if state := c.state(rq.Region.Now()); state == "expired" {
		return wire.Fail("InvalidState", "The capacity reservation '%s' is %s and cannot be cancelled", c.ID, state)
	}
	c.Canceled = true
	rq.XML.Boolean("return", true)
	return nil
}

type seedReservation struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Zone  string `json:"zone"`
	Count int64  `json:"count"`
	Match string `json:"match"` // "": open
}

func (r seeder) applyReservation(s seedReservation) error {
	if r.Reservations.Has(s.ID) {
		return nil
	}
	if !validID(s.ID, "cr-") {
		return fmt.Errorf("id %q is malformed", s.ID)
	}
	in := createReservationInput{InstanceType: s.Type, InstancePlatform: "Linux/UNIX", AvailabilityZone: s.Zone, InstanceCount: &s.Count, InstanceMatchCriteria: s.Match}
	if err := in.Check(); err != nil {
		return err
	}
	_, err := r.addReservation(s.ID, in)
	return err
}
