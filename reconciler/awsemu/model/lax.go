package model

// laxities lists limits of the models that the services do not enforce, by service and shape, each with its
// reason.
var laxities = map[string]string{
	"ec2 InstanceType":                         "regions get new types before the models do; a code of its own reports an unknown type",
	"autoscaling CapacityDistributionStrategy": "reservations-then-balanced is younger than the models",
}

// lax reports whether AWS does not enforce a shape's limits.
func (sv *Service) lax(shape string) bool {
	_, ok := laxities[sv.Name+" "+shape]
	return ok
}
