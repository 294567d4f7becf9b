package kinds

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// defaulted is a spec that needs defaults in addition to the tags of its fields. The tags have the defaults
// of CAPA's schemas. setDefaults fills in the defaults of CAPA's admission webhooks.
type defaulted interface {
	setDefaults(ref intent.ObjectRef)
}

// defaultSeconds is CAPA's replacement for a cooldown or warm-up of less than a second.
const defaultSeconds = 300

func (s *AWSMachinePoolSpec) setDefaults(intent.ObjectRef) {
	for _, v := range []*time.Duration{&s.DefaultCoolDown, &s.DefaultInstanceWarmup} {
		if *v/time.Second == 0 {
			*v = defaultSeconds * time.Second
		}
	}
	// With UnencryptedUserData, the Ignition document itself contains its version.
	if i := s.Ignition; i != nil && i.Version == "" && i.StorageType != "UnencryptedUserData" {
		i.Version = "2.3"
	}
}

func (s *AWSManagedMachinePoolSpec) setDefaults(ref intent.ObjectRef) {
	if s.EKSNodegroupName == "" {
		s.EKSNodegroupName = eksName(ref.Namespace, ref.Name, maxNodegroupName)
	}
	if s.UpdateConfig == nil {
		one := int32(1)
		s.UpdateConfig = &UpdateConfig{MaxUnavailable: &one}
	}
}

// controllerIdentity returns the identity of a cluster that names none.
func controllerIdentity() *IdentityReference {
	return &IdentityReference{Kind: "AWSClusterControllerIdentity", Name: "default"}
}

func (s *AWSClusterSpec) setDefaults(intent.ObjectRef) {
	if s.IdentityRef == nil {
		s.IdentityRef = controllerIdentity()
	}
}

func (s *AWSManagedControlPlaneSpec) setDefaults(ref intent.ObjectRef) {
	if s.EKSClusterName == "" {
		s.EKSClusterName = eksName(ref.Namespace, ref.Name, maxClusterName)
	}
	if s.IdentityRef == nil {
		s.IdentityRef = controllerIdentity()
	}
}
