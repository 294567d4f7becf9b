package kinds

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// defaulted is a spec that has defaults beyond those of its fields' tags: what
// CAPA's admission webhooks fill, where the tags hold what its schemas fill.
type defaulted interface {
	setDefaults(ref intent.ObjectRef)
}

// defaultSeconds is CAPA's replacement for a cooldown or warm-up under a second.
const defaultSeconds = 300

func (s *AWSMachinePoolSpec) setDefaults(intent.ObjectRef) {
	for _, v := range []*time.Duration{&s.DefaultCoolDown, &s.DefaultInstanceWarmup} {
		if *v/time.Second == 0 {
			*v = defaultSeconds * time.Second
		}
	}
	// With UnencryptedUserData the document itself says its version.
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

// controllerIdentity is the identity of a cluster that names none.
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
