package kinds

import (
	"cmp"
	"reflect"
	"slices"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// PoolOptionsSpec is PoolOptions.spec: what AWS takes for a pool and Cluster API
// Provider AWS's types cannot say. It is an object of its own, so that the pool's
// manifests stay valid for CAPA. Fields have the names of AWS's API in lower
// camel case.
type PoolOptionsSpec struct {
	PoolRef          PoolReference     `json:"poolRef" check:"required"`
	LaunchTemplate   *TemplateOptions  `json:"launchTemplate"`
	AutoScalingGroup *GroupOptions     `json:"autoScalingGroup"`
	Nodegroup        *NodegroupOptions `json:"nodegroup"`
	Drainer          *DrainerOptions   `json:"drainer"`
}

// PoolReference names a pool in the namespace of the object that refers to it, or
// the declaration of a launch template that pools share.
type PoolReference struct {
	Kind string `json:"kind" enum:"AWSMachinePool|AWSManagedMachinePool|AWSLaunchConfig|AWSLaunchConfigTemplate" check:"required"`
	Name string `json:"name" check:"required,minlen=1"`
}

// TemplateOptions are the members of EC2's RequestLaunchTemplateData that
// awsLaunchTemplate does not have: those that rows of package field give to PoolOptions.
type TemplateOptions struct {
	CapacityReservationSpecification *ReservationOptions `json:"capacityReservationSpecification"`
	intent.TemplateData
}

// inPool returns a hint if the pool's own object sets a member of AWS's API, and "" otherwise.
func inPool(of rows.Kind, member string) string {
	if at, ok := rows.InPool(of, member); ok {
		return "write spec." + at.String() + " in the pool"
	}
	return ""
}

func (TemplateOptions) unknownHint(name string) string {
	return cmp.Or(inPool(rows.Template, name), rows.Refused(reflect.TypeFor[intent.TemplateData](), name))
}

// ReservationOptions say into which group of capacity reservations instances are
// launched; a single reservation is awsLaunchTemplate.capacityReservationId.
type ReservationOptions struct {
	CapacityReservationTarget *ReservationTarget `json:"capacityReservationTarget"`
}

func (ReservationOptions) unknownHint(name string) string {
	return inPool(rows.Template, "capacityReservationSpecification."+name)
}

// ReservationTarget is a resource group of capacity reservations.
type ReservationTarget struct {
	CapacityReservationResourceGroupARN string `json:"capacityReservationResourceGroupArn"`
}

func (ReservationTarget) unknownHint(name string) string {
	return inPool(rows.Template, "capacityReservationSpecification.capacityReservationTarget."+name)
}

var OptionsTemplate = path("spec", "launchTemplate")

func (t *TemplateOptions) ReservationGroup() string {
	if c := t.CapacityReservationSpecification; c != nil && c.CapacityReservationTarget != nil {
		return c.CapacityReservationTarget.CapacityReservationResourceGroupARN
	}
	return ""
}

// AddTo writes the options that are set over the fields of out.
func (t *TemplateOptions) AddTo(out *intent.TemplateData) {
	if arn := t.ReservationGroup(); arn != "" {
		c := intent.CapacityReservation{}
		if out.CapacityReservationSpecification != nil {
			c = *out.CapacityReservationSpecification
		}
		c.TargetGroupARN = arn
		out.CapacityReservationSpecification = &c
	}
	from, to := reflect.ValueOf(&t.TemplateData).Elem(), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		if v := from.Field(i); !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0) {
			to.Field(i).Set(from.Field(i))
		}
	}
	out.NetworkInterfaces = slices.Clone(out.NetworkInterfaces)
	for i := range out.NetworkInterfaces {
		leaveOutEmpty(&out.NetworkInterfaces[i])
	}
}

// leaveOutEmpty removes empty parts of an interface.
func leaveOutEmpty(n *intent.NetworkInterface) {
	if c := n.ConnectionTrackingSpecification; c != nil && *c == (intent.ConnectionTracking{}) {
		n.ConnectionTrackingSpecification = nil
	}
	e := n.EnaSrdSpecification
	if e == nil {
		return
	}
	e = &intent.EnaSrd{EnaSrdEnabled: e.EnaSrdEnabled, EnaSrdUDPSpecification: e.EnaSrdUDPSpecification}
	if u := e.EnaSrdUDPSpecification; u != nil && *u == (intent.EnaSrdUDP{}) {
		e.EnaSrdUDPSpecification = nil
	}
	if n.EnaSrdSpecification = e; *e == (intent.EnaSrd{}) {
		n.EnaSrdSpecification = nil
	}
}
