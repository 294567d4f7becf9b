package kinds

import (
	"fmt"
	"slices"
	"strings"

	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
)

// AWSManagedMachinePoolSpec is AWSManagedMachinePool.spec: one EKS managed
// nodegroup, with a launch template where one is written.
type AWSManagedMachinePoolSpec struct {
	EKSNodegroupName           string            `json:"eksNodegroupName"`
	AvailabilityZones          []string          `json:"availabilityZones"`
	AvailabilityZoneSubnetType string            `json:"availabilityZoneSubnetType" in:"v1beta2"`
	SubnetIDs                  []string          `json:"subnetIDs"`
	AdditionalTags             map[string]string `json:"additionalTags"`
	RoleName                   string            `json:"roleName"`
	RoleAdditionalPolicies     []string          `json:"roleAdditionalPolicies"`
	RolePath                   string            `json:"rolePath" in:"v1beta2"`
	RolePermissionsBoundary    string            `json:"rolePermissionsBoundary" in:"v1beta2"`
	AMIVersion                 *string           `json:"amiVersion"`
	AMIType                    AMIType           `json:"amiType" default:"AL2_x86_64"`
	Labels                     map[string]string `json:"labels"`
	Taints                     []Taint           `json:"taints"`
	DiskSize                   *int32            `json:"diskSize" check:"min=1"`
	InstanceType               *string           `json:"instanceType"`
	Scaling                    *Scaling          `json:"scaling"`
	RemoteAccess               *RemoteAccess     `json:"remoteAccess"`
	ProviderIDList             Anything          `json:"providerIDList"`
	CapacityType               string            `json:"capacityType" default:"onDemand"`
	UpdateConfig               *UpdateConfig     `json:"updateConfig"`
	AWSLaunchTemplate          *LaunchTemplate   `json:"awsLaunchTemplate"`
	LifecycleHooks             []LifecycleHook   `json:"lifecycleHooks" in:"v1beta2"`
	NodeRepairConfig           *NodeRepairConfig `json:"nodeRepairConfig" in:"v1beta2"`
	LaunchConfigRef            *LaunchConfigRef  `json:"launchConfigRef"`
}

// unknownHint returns the hint for an unknown field of the spec, or "" if weir knows no better place for
// it.
func (AWSManagedMachinePoolSpec) unknownHint(name string) string {
	switch name {
	case "subnets":
		return "a managed pool takes spec.subnetIDs, a list of subnet ids"
	case "minSize", "maxSize":
		return "write it under spec.scaling"
	}
	if hasField[LaunchTemplate](name) {
		return "write it under spec.awsLaunchTemplate"
	}
	if at, ok := rows.InPool(rows.Nodegroup, name); ok {
		return fmt.Sprintf("EKS's %s is %q here", name, at)
	}
	if hasField[NodegroupOptions](name) {
		return "write spec.nodegroup." + name + " in a PoolOptions"
	}
	return ""
}

// AMIType is EKS's amiType.
type AMIType string

// IsAL2 reports whether the image is Amazon Linux 2. EKS has no such image for Kubernetes 1.33 and newer.
func (t AMIType) IsAL2() bool {
	return slices.Contains([]AMIType{"AL2_x86_64", "AL2_x86_64_GPU", "AL2_ARM_64"}, t)
}

// Disks are the device names of an image's volumes, and the minimum size of each in GiB.
type Disks struct {
	Root    string
	RootGiB int64
	// Data is the device for containers and images if this is not Root.
	Data    string
	DataGiB int64
}

// Disks returns the disks of EKS's own images. weir does not look up the image if EKS chooses it. ok is false
// for CUSTOM. Sources: the device mappings of the images that EKS publishes, "Bottlerocket" in its user
// guide, and EKS's answer to a smaller volume. The snapshot of Amazon Linux 2 is smaller than the volume that
// its image requests.
func (t AMIType) Disks() (d Disks, ok bool) {
	switch t.Family() {
	case FamilyAL2:
		return Disks{Root: "/dev/xvda", RootGiB: 4}, true
	case FamilyAL2023:
		return Disks{Root: "/dev/xvda", RootGiB: 20}, true
	case FamilyBottlerocket:
		return Disks{Root: "/dev/xvda", RootGiB: 2, Data: "/dev/xvdb", DataGiB: 20}, true
	case FamilyWindows:
		return Disks{Root: "/dev/sda1", RootGiB: 50}, true
	}
	return Disks{}, false
}

// Taint is a taint of a nodegroup.
type Taint struct {
	Key    string `json:"key" check:"required"`
	Value  string `json:"value" check:"required"`
	Effect string `json:"effect" check:"required"`
}

// Scaling are the bounds of a nodegroup.
type Scaling struct {
	MinSize *int32 `json:"minSize" check:"min=0"`
	MaxSize *int32 `json:"maxSize" check:"min=0"`
}

// RemoteAccess is SSH access to the nodes of a nodegroup.
type RemoteAccess struct {
	SSHKeyName           *string  `json:"sshKeyName"`
	SourceSecurityGroups []string `json:"sourceSecurityGroups"`
	Public               bool     `json:"public"`
}

// UpdateConfig bounds how many nodes an update takes down. In v1beta1 the
// percentage is misspelt, and both spellings are carried.
type UpdateConfig struct {
	MaxUnavailable           *int32 `json:"maxUnavailable"`
	MaxUnavailablePercentage *int32 `json:"maxUnavailablePercentage" in:"v1beta2"`
	MaxUnavailablePrecentage *int32 `json:"maxUnavailablePrecentage" in:"v1beta1"`
}

// NodeRepairConfig is EKS's automatic node repair.
type NodeRepairConfig struct {
	Enabled *bool `json:"enabled" default:"false"`
}

// ManagedImage reports whether the image of a managed pool comes from its launch template: an id, a written
// lookup, or CUSTOM. Otherwise EKS chooses it.
func ManagedImage(s *AWSManagedMachinePoolSpec) bool {
	lt := s.AWSLaunchTemplate
	return lt != nil && (lt.AMI.ID != nil || lt.AMI.EKSLookupType != nil || s.AMIType == "CUSTOM" ||
		lt.ImageLookupFormat != "" || lt.ImageLookupOrg != "" || lt.ImageLookupBaseOS != "")
}

// ImageFamily is a family of EKS images. Every family has its own way of bootstrapping.
type ImageFamily string

const (
	FamilyAL2          ImageFamily = "Amazon Linux 2"
	FamilyAL2023       ImageFamily = "Amazon Linux 2023"
	FamilyBottlerocket ImageFamily = "Bottlerocket"
	FamilyWindows      ImageFamily = "Windows"
)

// EKSFamily returns the family of an image that is looked up among EKS's images, or "".
func EKSFamily(image intent.Lookup) ImageFamily {
	switch {
	case image.Kind != intent.ImageForEKS:
		return ""
	case strings.HasPrefix(image.Name, "AmazonLinux2023"):
		return FamilyAL2023
	}
	return FamilyAL2
}

// Family returns the family of the images of an amiType, or "" for CUSTOM.
func (t AMIType) Family() ImageFamily {
	for prefix, f := range map[string]ImageFamily{"AL2_": FamilyAL2, "AL2023_": FamilyAL2023, "BOTTLEROCKET_": FamilyBottlerocket, "WINDOWS_": FamilyWindows} {
		if strings.HasPrefix(string(t), prefix) {
			return f
		}
	}
	return ""
}

// Architecture returns the architecture of the images of an amiType, or "" for CUSTOM. The name of an amiType
// contains it (AMITypes in EKS's API).
func (t AMIType) Architecture() string {
	switch {
	case t == "CUSTOM" || t == "":
		return ""
	case strings.Contains(string(t), "_ARM_64"):
		return instancetypes.ARM
	}
	return instancetypes.X86
}
