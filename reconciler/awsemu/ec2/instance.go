package ec2

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// The timer kinds of instances. The key is the instance's id.
const (
	TimerInstanceRunning    = "ec2.instance-running"
	timerInstanceTerminated = "ec2.instance-terminated"
	timerInstanceForget     = "ec2.instance-forget"
)

// The states of an instance.
const (
	InstancePending      = "pending"
	InstanceRunning      = "running"
	InstanceStopped      = "stopped"
	InstanceShuttingDown = "shutting-down"
	InstanceTerminated   = "terminated"
)

// Instance is an EC2 instance.
type Instance struct {
	ID           string
	Type         string
	ImageID      string
	Architecture string
	SubnetID     string
	VpcID        string
	Zone         string
	PrivateIP    string
	KeyName      string
	Profile      string // instance profile ARN, "" for none
	Lifecycle    string // "spot" or ""
	Groups       []string
	LaunchTime   time.Time
	State        string
	Reason       string // reason of its termination

	// The launch template version that it was launched from.
	TemplateID      string
	TemplateName    string
	TemplateVersion int64

	PlacementGroup string `json:",omitempty"` // name
	Reserved       string `json:",omitempty"` // its capacity reservation

	// The reservation and launch data of an instance that RunInstances made.
	Reservation string    `json:",omitempty"`
	Index       int64     `json:",omitempty"` // in the reservation
	Data        wire.Data `json:",omitempty"`

	// The effects of a LaunchFault. An Unhealthy instance runs but never becomes healthy. Dies is the reason
	// for which EC2 terminates the instance after its start. A Stuck instance stays pending.
	Unhealthy bool   `json:",omitempty"`
	Dies      string `json:",omitempty"`
	Stuck     bool   `json:",omitempty"`

	Tags  world.Tags
	Owner string // its launcher, in the launcher's format
}

// Alive reports whether the instance exists and no call has ended it.
func (in *Instance) Alive() bool {
	return in.State == InstancePending || in.State == InstanceRunning || in.State == InstanceStopped
}

// TerminateInstance terminates an instance: it is shutting-down now, terminated after the timings'
// InstanceShutdown, and forgotten after InstanceForget. Nothing happens if it has ended already.
func (r *Region) TerminateInstance(id, reason string) {
	in := r.Instances.Get(id)
	if in == nil || !in.Alive() {
		return
	}
	from := in.State
	in.State, in.Reason = InstanceShuttingDown, reason
	r.After(r.Timings().InstanceShutdown, timerInstanceTerminated, id)
	r.InstanceChanged(in, from)
}

// InstanceChanged reports the change of an instance's state to the launchers.
func (r *Region) InstanceChanged(in *Instance, from string) {
	if r.changed != nil {
		r.changed(in, from)
	}
}

// Timers returns the timed events of EC2, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){
		TimerInstanceRunning: func(r *Region, id string) {
			if in := r.Instances.Get(id); in != nil && in.State == InstancePending && !in.Stuck {
				if in.Dies != "" {
					r.TerminateInstance(id, in.Dies)
					return
				}
				in.State = InstanceRunning
				r.InstanceChanged(in, InstancePending)
			}
		},
		timerInstanceTerminated: func(r *Region, id string) {
			if in := r.Instances.Get(id); in != nil && in.State == InstanceShuttingDown {
				in.State = InstanceTerminated
				if s := r.Subnets.Get(in.SubnetID); s != nil {
					s.release(in.PrivateIP)
				}
				r.After(r.Timings().InstanceForget, timerInstanceForget, id)
				r.InstanceChanged(in, InstanceShuttingDown)
			}
		},
		timerInstanceForget: func(r *Region, id string) { r.Instances.Remove(id) },
	}
}
