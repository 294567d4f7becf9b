package observed

import "time"

// Machine is an EC2 instance with what AWS reports about it when a person asks. Passes do not read it.
type Machine struct {
	ID         string
	Type       string
	Zone       string
	ImageID    string
	PrivateIP  string
	PrivateDNS string
	// Market is on-demand, or AWS's InstanceLifecycle, such as spot.
	Market string
	// State is EC2's state, such as running. StateReason is EC2's reason for the last change.
	State       string
	StateReason string
	LaunchedAt  time.Time
	// GroupName is the Auto Scaling group that launched it, and Template the version that it was launched
	// from, by the tags that AWS sets. Both may be empty.
	GroupName string
	Template  TemplateRef
	// Group is the group of GroupName. It is nil if it was not read.
	Group *Group
	// Description is the description of the template version, empty if it was not read.
	Description string
	// Image is the image of ImageID. It is zero if it was not read.
	Image Image
	// Notes lists the parts that AWS did not return, each with the reason.
	Notes []string
}

// InGroup returns the instance as its group lists it. It returns false if the group does not list it.
func (m Machine) InGroup() (Instance, bool) {
	if m.Group != nil {
		for _, i := range m.Group.Instances {
			if i.ID == m.ID {
				return i, true
			}
		}
	}
	return Instance{}, false
}
