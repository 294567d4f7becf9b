package intent

import "github.com/weir-gitops/weir/render/diag"

// Unplanned is a pool, a part of one or a launch configuration in the manifests without a resulting
// Pool: it is broken, half of it is missing, or nothing refers to it. Its resources stay in AWS.
type Unplanned struct {
	// Key is the key of the MachinePool, or of the infrastructure pool if no MachinePool refers to
	// it.
	Key Key `json:"key"`
	// Kind is empty where the manifests do not say it, and for a launch configuration.
	Kind PoolKind `json:"kind,omitempty"`
	// ClusterKey names the Cluster as the MachinePool does; EKSName is the EKS cluster's
	// name, empty where it is unknown.
	ClusterKey Key    `json:"cluster,omitzero"`
	EKSName    string `json:"eksName,omitempty"`
	// Objects are the objects of the manifests that the pool consists of.
	Objects []ObjectRef `json:"objects"`
	// Foreign says that nothing is wrong: another provider has the pool's machines, or no
	// pool uses the launch configuration.
	Foreign bool `json:"foreign,omitempty"`
	// Fault is the first error about the pool. Its Code is empty where Foreign is true.
	Fault diag.Diagnostic `json:"fault,omitzero"`

	// Pools are the values of the tag weir.dev/pool that AWS's resources of it may have.
	Pools []string `json:"pools,omitempty"`
	// Names lists the names of its Auto Scaling group and launch template, Nodegroups that of its
	// nodegroup.
	Names      []string `json:"names,omitempty"`
	Nodegroups []string `json:"nodegroups,omitempty"`
	// LaunchConfigs are the launch configurations that it is or refers to. The names of
	// launch templates that derive from one begin with a cluster's name and end with
	// "-<name>-group" or "-<name>-nodegroup".
	LaunchConfigs []ObjectRef `json:"launchConfigs,omitempty"`
}

// IsPool reports whether the entry is about a pool, not about a launch configuration alone.
func (u *Unplanned) IsPool() bool { return len(u.Pools) > 0 }

// Broken returns the entries of pools with a fault.
func (s *Set) Broken() []Unplanned {
	var out []Unplanned
	for _, u := range s.Unplanned {
		if u.IsPool() && !u.Foreign {
			out = append(out, u)
		}
	}
	return out
}
