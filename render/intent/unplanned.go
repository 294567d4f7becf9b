package intent

import "github.com/weir-gitops/weir/render/diag"

// Unplanned is a pool or launch configuration in the manifests, or a part of a pool, that results in no Pool.
// It has an error, half of it is missing, or nothing refers to it. Its resources stay in AWS.
type Unplanned struct {
	// Key is the key of the MachinePool. If no MachinePool refers to the infrastructure pool, it is the key
	// of the latter.
	Key Key `json:"key"`
	// Kind is empty for a launch configuration, and if it does not follow from the manifests.
	Kind PoolKind `json:"kind,omitempty"`
	// ClusterKey is the key of the Cluster in the MachinePool. EKSName is the name of the EKS cluster, or
	// empty if unknown.
	ClusterKey Key    `json:"cluster,omitzero"`
	EKSName    string `json:"eksName,omitempty"`
	// Objects are the manifests of the pool.
	Objects []ObjectRef `json:"objects"`
	// Foreign means that nothing is wrong: another provider manages the pool's machines, or no pool uses the
	// launch configuration.
	Foreign bool `json:"foreign,omitempty"`
	// Fault is the first error about the pool. Its Code is empty if Foreign is true.
	Fault diag.Diagnostic `json:"fault,omitzero"`

	// Pools are the possible values of the tag weir.dev/pool on the AWS resources of the pool.
	Pools []string `json:"pools,omitempty"`
	// Names are the names of its Auto Scaling group and launch template. Nodegroups has the name of its
	// nodegroup.
	Names      []string `json:"names,omitempty"`
	Nodegroups []string `json:"nodegroups,omitempty"`
	// LaunchConfigs are the launch configurations that it is or refers to. Launch templates that derive from
	// one have names with the cluster's name as prefix and "-<name>-group" or "-<name>-nodegroup" as suffix.
	LaunchConfigs []ObjectRef `json:"launchConfigs,omitempty"`
}

// IsPool reports whether the entry is about a pool. If not, it is about a launch configuration.
func (u *Unplanned) IsPool() bool { return len(u.Pools) > 0 }

// Broken returns the entries that have a fault.
func (s *Set) Broken() []Unplanned {
	var out []Unplanned
	for _, u := range s.Unplanned {
		if u.IsPool() && !u.Foreign {
			out = append(out, u)
		}
	}
	return out
}
