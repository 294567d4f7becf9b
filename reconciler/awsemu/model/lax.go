package model

// laxities are limits of the models that the services themselves do not hold
// callers to, by service and shape, each with its reason.
var laxities = map[string]string{
	"ec2 InstanceType":                         "new types come to regions before they come to the models; whether a type exists is told by a code of its own",
	"autoscaling CapacityDistributionStrategy": "reservations-then-balanced is younger than the models",
}

// lax says whether a shape's limits are not AWS's own.
func (sv *Service) lax(shape string) bool {
	_, ok := laxities[sv.Name+" "+shape]
	return ok
}
