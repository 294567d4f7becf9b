package ec2

// LaunchFault makes launches of instances fail, as AWS does for lack of capacity
// or a broken image. The zero value of a selector matches every launch.
type LaunchFault struct {
	InstanceType     string `json:"instanceType"`
	AvailabilityZone string `json:"availabilityZone"`
	ImageID          string `json:"imageId"`

	// Code is such as InsufficientInstanceCapacity. With one that is a state reason, such
	// as Client.InternalError, EC2 starts the instance and ends it; without any it
	// launches but stays unhealthy.
	Code    string `json:"code"`
	Message string `json:"message"`
	// A Stuck instance stays pending.
	Stuck bool `json:"stuck"`
}

// launchFault returns the fault that strikes a launch, nil for none.
func (r *Region) launchFault(instanceType, zone, image string) *LaunchFault {
	for _, l := range r.launches.List() {
		if (l.InstanceType == "" || l.InstanceType == instanceType) &&
			(l.AvailabilityZone == "" || l.AvailabilityZone == zone) &&
			(l.ImageID == "" || l.ImageID == image) {
			return l
		}
	}
	return nil
}
